import type { Logger } from "../../base/index.ts";
import { documentsListedMax, type DocumentPosition, type Documents } from "../../records/index.ts";

/** Values of one kind as documents. One that cannot be read stays where it is, is told, and is not served. */
export class RecordedValues<Value> {
  readonly #documents: Documents;
  readonly #kind: string;
  readonly #logger: Logger;

  constructor(documents: Documents, kind: string, logger: Logger) {
    this.#documents = documents;
    this.#kind = kind;
    this.#logger = logger;
  }

  async get(key: string): Promise<Value | null> {
    const found = await this.#documents.get(this.#kind, key);
    return found === null ? null : this.#read(found);
  }

  async all(): Promise<readonly Value[]> {
    const all: Value[] = [];
    for (let after: DocumentPosition | null = null; ;) {
      const query = { kind: this.#kind, order: null, isDescending: false, after, limit: documentsListedMax };
      const { documents, next } = await this.#documents.list(query);
      for (const document of documents) {
        const value = this.#read(document);
        if (value !== null) all.push(value);
      }
      if (next === null) return all;
      after = next;
    }
  }

  async put(key: string, value: Value): Promise<void> {
    await this.#documents.write([{ do: "put", kind: this.#kind, key, body: JSON.stringify(value), expects: "any" }]);
  }

  async delete(key: string): Promise<void> {
    await this.deleteAll([key]);
  }

  /** All at once, or none. */
  async deleteAll(keys: readonly string[]): Promise<void> {
    await this.#documents.write(keys.map((key) => ({ do: "delete", kind: this.#kind, key, expects: "any" })));
  }

  #read({ key, body }: { readonly key: string; readonly body: string }): Value | null {
    try {
      return JSON.parse(body) as Value;
    } catch (error) {
      this.#logger.error("a record is damaged and left out", { kind: this.#kind, key, error: String(error) });
      return null;
    }
  }
}
