import { ChangeNotifier, delay, TaskGroup, type Clock, type Logger } from "@galatea/base";
import {
  ChangesForgotten,
  documentsListedMax,
  type Document,
  type DocumentPosition,
  type DocumentReader,
} from "./documents.ts";

export interface FollowedDocumentsOptions {
  readonly reader: DocumentReader;
  readonly kinds: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

const retryMs = 1000;

/**
 * Documents of some kinds in memory, which follow the change feed. While the database is unreachable, they stay as they
 * are.
 */
export class FollowedDocuments implements AsyncDisposable {
  readonly #options: FollowedDocumentsOptions;
  readonly #changed = new ChangeNotifier();
  readonly #tasks: TaskGroup;
  #byKind: ReadonlyMap<string, Map<string, Document>> = new Map();
  #isLoaded = false;

  /** Starts to read. The documents are empty until `isLoaded`. */
  constructor(options: FollowedDocumentsOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("bug: following the records has stopped", { error: String(error) });
    });
    this.#tasks.run((closing) => this.#follow(closing));
  }

  /** True after all documents have been read once. */
  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  of(kind: string): Iterable<Document> {
    return this.#byKind.get(kind)?.values() ?? [];
  }

  get(kind: string, key: string): Document | null {
    return this.#byKind.get(kind)?.get(key) ?? null;
  }

  /** Resolves at the next change of a document. */
  changed(): Promise<void> {
    return this.#changed.nextChange();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
  }

  async #follow(closing: AbortSignal): Promise<void> {
    const { reader, clock, logger } = this.#options;
    let failure: string | null = null;
    for (let since: number | null = null; ;) {
      try {
        since ??= await this.#load();
        if (failure !== null) logger.info("reading the records again");
        failure = null;
        for await (const batch of reader.changes(since, closing)) {
          since = batch.version;
          for (const { kind, key, document } of batch.changes) {
            const documents = this.#byKind.get(kind);
            if (document === null) documents?.delete(key);
            else documents?.set(key, document);
          }
          this.#changed.notify();
        }
      } catch (error) {
        closing.throwIfAborted();
        if (error instanceof ChangesForgotten) {
          since = null;
          continue;
        }
        if (failure !== String(error))
          logger.warning("the records are not readable; retrying", { error: String(error) });
        failure = String(error);
        await delay(clock, retryMs, closing);
      }
    }
  }

  /** Reads all documents. Resolves with the version up to which they are complete. */
  async #load(): Promise<number> {
    const { reader, kinds } = this.#options;
    const version = await reader.version();
    const byKind = new Map<string, Map<string, Document>>();
    for (const kind of kinds) {
      const documents = new Map<string, Document>();
      for (let after: DocumentPosition | null = null; ;) {
        const page = await reader.list({ kind, order: null, isDescending: false, after, limit: documentsListedMax });
        for (const { value: _, ...document } of page.documents) documents.set(document.key, document);
        if (page.next === null) break;
        after = page.next;
      }
      byKind.set(kind, documents);
    }
    this.#byKind = byKind;
    this.#isLoaded = true;
    this.#changed.notify();
    return version;
  }
}
