import type { Logger } from "@galatea/base";
import type { Document, DocumentChange, DocumentPosition, Documents, ExpectedVersion } from "../records/index.ts";

export interface RecordKindOptions<Value> {
  readonly documents: Documents;
  /** Returns the sort value of a record for each order of its listings. */
  readonly orders: (value: Value) => Readonly<Record<string, string>>;
  readonly logger: Logger;
}

/**
 * The result of looking up a key. An unreadable record is logged and treated as absent, but stays on disk until a record
 * with its key is created.
 */
export type RecordState<Value> =
  | { readonly at: "absent" }
  | { readonly at: "damaged"; readonly version: number }
  | { readonly at: "found"; readonly value: Value; readonly version: number };

export interface StoredRecord<Value> {
  readonly key: string;
  readonly version: number;
  readonly value: Value;
  readonly position: DocumentPosition;
}

export interface RecordPage<Value> {
  readonly records: readonly StoredRecord<Value>[];
  readonly next: DocumentPosition | null;
}

/** Number of records per page of `all`. */
const readAtOnce = 500;
/** Maximum number of damaged records that are remembered, so that each of them is logged only once. */
const loggedMax = 1000;

/** Reads and writes records of one kind, which are stored as documents. */
export class RecordKind<Value> {
  readonly kind: string;
  readonly #options: RecordKindOptions<Value>;
  readonly #logged = new Set<string>();

  constructor(kind: string, options: RecordKindOptions<Value>) {
    this.kind = kind;
    this.#options = options;
  }

  async find(key: string): Promise<RecordState<Value>> {
    const document = await this.#options.documents.get(this.kind, key);
    if (document === null) return { at: "absent" };
    const { version } = document;
    const value = this.read(document);
    return value === null ? { at: "damaged", version } : { at: "found", value, version };
  }

  /** Parses a document. Returns null for an unreadable record, which is logged once. */
  read({ key, version, body }: Pick<Document, "key" | "version" | "body">): Value | null {
    try {
      return JSON.parse(body) as Value;
    } catch (error) {
      this.#logDamaged(`${key} ${version}`, { key, error: String(error) });
      return null;
    }
  }

  /** Reads a page of records. A page may have fewer records than the limit, or none, even if more records follow. */
  async page(query: {
    readonly order: string | null;
    readonly isDescending: boolean;
    readonly after: DocumentPosition | null;
    readonly limit: number;
  }): Promise<RecordPage<Value>> {
    const { documents, next } = await this.#options.documents.list({ kind: this.kind, ...query });
    const records = documents.flatMap((document) => {
      const value = this.read(document);
      const { key, version } = document;
      return value === null ? [] : [{ key, version, value, position: { value: document.value, key } }];
    });
    return { records, next };
  }

  /** Yields all records, in the given order or by key. They are read page by page. */
  async *all(order: string | null = null): AsyncGenerator<StoredRecord<Value>> {
    const query = { order, isDescending: false, limit: readAtOnce };
    for (let page = await this.page({ ...query, after: null }); ;) {
      yield* page.records;
      if (page.next === null) return;
      page = await this.page({ ...query, after: page.next });
    }
  }

  #logDamaged(record: string, fields: { readonly key: string; readonly error: string }): void {
    if (this.#logged.has(record)) return;
    if (this.#logged.size >= loggedMax) this.#logged.clear();
    this.#logged.add(record);
    this.#options.logger.error("damaged record skipped; it stays on disk", { kind: this.kind, ...fields });
  }

  putChange(key: string, value: Value, expects: ExpectedVersion): DocumentChange {
    const orders = this.#options.orders(value);
    return { do: "put", kind: this.kind, key, body: JSON.stringify(value), orders, expects };
  }

  deleteChange(key: string, expects: number | "any"): DocumentChange {
    return { do: "delete", kind: this.kind, key, expects };
  }

  /** Returns a document change that makes a transaction fail unless the record has this version. */
  versionCheck(key: string, version: number): DocumentChange {
    return { do: "check", kind: this.kind, key, expects: version };
  }
}
