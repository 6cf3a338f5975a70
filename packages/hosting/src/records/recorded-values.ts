import type { Logger } from "@galatea/base";
import type { Documents } from "./documents.ts";
import { readAllJson, readJson } from "./json-documents.ts";

/**
 * Values of one kind, stored as JSON documents. An unreadable document stays on disk, is logged and is not returned.
 */
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
    return found === null ? null : (readJson(found, this.#logger) as Value | null);
  }

  async all(): Promise<readonly Value[]> {
    const all: Value[] = [];
    for await (const { value } of readAllJson<Value>(this.#documents, this.#kind, { logger: this.#logger }))
      all.push(value);
    return all;
  }

  async put(key: string, value: Value): Promise<void> {
    await this.#documents.write([{ do: "put", kind: this.#kind, key, body: JSON.stringify(value), expects: "any" }]);
  }

  async delete(key: string): Promise<void> {
    await this.deleteAll([key]);
  }

  /** Deletes all given values in one transaction. */
  async deleteAll(keys: readonly string[]): Promise<void> {
    await this.#documents.write(keys.map((key) => ({ do: "delete", kind: this.#kind, key, expects: "any" })));
  }
}
