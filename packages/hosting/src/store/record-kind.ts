import type { Logger } from "@galatea/base";
import type { Document, DocumentChange, DocumentPosition, Documents, Expectation } from "../records/index.ts";

export interface RecordKindOptions<Value> {
  readonly documents: Documents;
  /** Returns the record's value in each order of its listings. */
  readonly orders: (value: Value) => Readonly<Record<string, string>>;
  readonly logger: Logger;
}

/**
 * The state of a key. An unreadable record stays on disk, is logged and not served; creating a record with its name
 * overwrites it.
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
/** Maximum number of damaged records that are remembered as logged. */
const loggedMax = 1000;

/** Hosting's records of one kind, as documents. */
export class RecordKind<Value> {
  readonly kind: string;
  readonly #options: RecordKindOptions<Value>;
  readonly #told = new Set<string>();

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

  /** Returns null for an unreadable record, which is logged once. */
  read({ key, version, body }: Pick<Document, "key" | "version" | "body">): Value | null {
    try {
      return JSON.parse(body) as Value;
    } catch (error) {
      this.#tell(`${key} ${version}`, { key, error: String(error) });
      return null;
    }
  }

  /** Reads a page, which may have fewer records than its limit, or none, with more after it. */
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

  /** Yields all records page by page, by key unless an order is given. */
  async *all(order: string | null = null): AsyncGenerator<StoredRecord<Value>> {
    const query = { order, isDescending: false, limit: readAtOnce };
    for (let page = await this.page({ ...query, after: null }); ;) {
      yield* page.records;
      if (page.next === null) return;
      page = await this.page({ ...query, after: page.next });
    }
  }

  #tell(record: string, fields: { readonly key: string; readonly error: string }): void {
    if (this.#told.has(record)) return;
    if (this.#told.size >= loggedMax) this.#told.clear();
    this.#told.add(record);
    this.#options.logger.error("a record is damaged and left out", { kind: this.kind, ...fields });
  }

  put(key: string, value: Value, expects: Expectation): DocumentChange {
    const orders = this.#options.orders(value);
    return { do: "put", kind: this.kind, key, body: JSON.stringify(value), orders, expects };
  }

  delete(key: string, expects: number | "any"): DocumentChange {
    return { do: "delete", kind: this.kind, key, expects };
  }

  /** Returns a change that fails unless this record has this version. */
  check(key: string, version: number): DocumentChange {
    return { do: "check", kind: this.kind, key, expects: version };
  }
}
