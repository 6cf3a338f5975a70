import { ChangeNotifier, rejectOnAbort } from "@galatea/base";
import {
  ChangesForgotten,
  DocumentConflict,
  documentsListedMax,
  type ChangeBatch,
  type ChangedDocument,
  type Document,
  type DocumentChange,
  type DocumentPage,
  type DocumentQuery,
  type Documents,
  type ListedDocument,
} from "./documents.ts";

export interface MemoryDocumentsOptions {
  /** Number of deletions that are kept for readers of changes. */
  readonly deletionsMax: number;
  /** Maximum number of changes in a batch. */
  readonly batchMax: number;
}

interface Held extends Document {
  readonly orders: Readonly<Record<string, string>>;
}

/** The content of in-memory documents. Several `MemoryDocuments` can use it one after another, to simulate restarts. */
export class DocumentMemory {
  readonly held = new Map<string, Held>();
  readonly gone = new Map<string, ChangedDocument>();
  version = 0;
  forgotten = 0;

  find(kind: string, key: string): Document | null {
    const held = this.held.get(idOf({ kind, key }));
    return held === undefined ? null : asDocument(held);
  }

  /** Makes all changes atomically. Returns their version. */
  write(changes: readonly DocumentChange[]): number {
    const { held, gone } = this;
    for (const change of changes) {
      const found = held.get(idOf(change))?.version ?? "absent";
      if (change.expects !== "any" && change.expects !== found) throw new DocumentConflict(change.kind, change.key);
    }
    const version = (this.version += 1);
    for (const change of changes) {
      if (change.do === "check") continue;
      const { kind, key } = change;
      const id = idOf(change);
      if (change.do === "put") {
        held.set(id, { kind, key, version, body: change.body, orders: change.orders ?? {} });
        gone.delete(id);
      } else if (held.delete(id)) gone.set(id, { kind, key, version, document: null });
    }
    return version;
  }
}

const idOf = ({ kind, key }: { readonly kind: string; readonly key: string }) => JSON.stringify([kind, key]);
const compare = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** In-memory documents, for simulations and tests. */
export class MemoryDocuments implements Documents {
  readonly #memory: DocumentMemory;
  readonly #options: MemoryDocumentsOptions;
  readonly #written = new ChangeNotifier();

  constructor(
    memory = new DocumentMemory(),
    options: MemoryDocumentsOptions = { deletionsMax: 10_000, batchMax: 500 },
  ) {
    this.#memory = memory;
    this.#options = options;
  }

  async get(kind: string, key: string): Promise<Document | null> {
    return this.#memory.find(kind, key);
  }

  async list({ kind, order, isDescending, prefix = "", after, limit }: DocumentQuery): Promise<DocumentPage> {
    const sign = isDescending ? -1 : 1;
    const placed: ListedDocument[] = [];
    for (const held of this.#memory.held.values()) {
      const value = order === null ? held.key : held.orders[order];
      if (held.kind === kind && value?.startsWith(prefix) === true) placed.push({ ...asDocument(held), value });
    }
    type Position = NonNullable<DocumentQuery["after"]>;
    const by = (a: Position, b: Position) => sign * (compare(a.value, b.value) || compare(a.key, b.key));
    const left = placed.filter((each) => after === null || by(each, after) > 0).toSorted(by);
    const documents = left.slice(0, Math.min(limit, documentsListedMax));
    const last = documents.at(-1);
    const hasMore = documents.length < left.length && last !== undefined;
    return { documents, next: hasMore ? { value: last.value, key: last.key } : null };
  }

  async write(changes: readonly DocumentChange[]): Promise<number> {
    const version = this.#memory.write(changes);
    if (this.#memory.gone.size > this.#options.deletionsMax) this.#forget();
    this.#written.notify();
    return version;
  }

  async version(): Promise<number> {
    return this.#memory.version;
  }

  async *changes(sinceVersion: number, signal: AbortSignal): AsyncIterable<ChangeBatch> {
    for (let since = sinceVersion; ;) {
      signal.throwIfAborted();
      const written = this.#written.nextChange();
      if (this.#memory.version > since) {
        const batch = this.#batch(since);
        since = batch.version;
        yield batch;
      } else await rejectOnAbort(written, signal);
    }
  }

  #batch(since: number): ChangeBatch {
    const { held, gone, forgotten, version: last } = this.#memory;
    if (since < forgotten) throw new ChangesForgotten(since);
    const there = [...held.values()].map((each): ChangedDocument => {
      const { kind, key, version } = each;
      return { kind, key, version, document: asDocument(each) };
    });
    const changed = [...there, ...gone.values()]
      .filter(({ version }) => version > since)
      .toSorted((a, b) => a.version - b.version || compare(a.kind, b.kind) || compare(a.key, b.key));
    const version = changed[this.#options.batchMax - 1]?.version ?? last;
    return { version, changes: changed.filter((each) => each.version <= version) };
  }

  #forget(): void {
    const { gone } = this.#memory;
    const surplus = [...gone].slice(0, gone.size - Math.ceil(this.#options.deletionsMax / 2));
    for (const [id, { version }] of surplus) {
      gone.delete(id);
      this.#memory.forgotten = Math.max(this.#memory.forgotten, version);
    }
  }
}

function asDocument({ kind, key, version, body }: Document): Document {
  return { kind, key, version, body };
}
