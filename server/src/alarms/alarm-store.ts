import type { Logger } from "../base/index.ts";
import { documentsListedMax, type DocumentChange, type DocumentPosition, type Documents } from "../records/index.ts";
import type { AlarmRecord, HistoryItem } from "./alarm.ts";

const kind = "alarm";
const historyKind = "alarm-history";

export interface AlarmStoreOptions {
  readonly documents: Documents;
  readonly limits: { readonly historyMax: number };
  readonly logger: Logger;
}

/** Alarms and their histories as documents, by name. Who writes one alarm twice at once loses one item of its history. */
export class AlarmStore {
  readonly #options: AlarmStoreOptions;

  constructor(options: AlarmStoreOptions) {
    this.#options = options;
  }

  /** One that cannot be read stays where it is, is told, and is not served. */
  async all(): Promise<readonly AlarmRecord[]> {
    const { documents } = this.#options;
    const all: AlarmRecord[] = [];
    for (let after: DocumentPosition | null = null; ;) {
      const page = await documents.list({ kind, order: null, isDescending: false, after, limit: documentsListedMax });
      for (const { key, body } of page.documents) {
        const record = this.#read(key, body) as (Omit<AlarmRecord, "owed"> & Partial<AlarmRecord>) | null;
        // What earlier versions have recorded owes nothing.
        if (record !== null) all.push({ owed: [], ...record });
      }
      if (page.next === null) return all;
      after = page.next;
    }
  }

  /** Oldest first. */
  async history(name: string): Promise<readonly HistoryItem[]> {
    const found = await this.#options.documents.get(historyKind, name);
    return found === null ? [] : ((this.#read(name, found.body) ?? []) as readonly HistoryItem[]);
  }

  async put(record: AlarmRecord, items: readonly HistoryItem[]): Promise<void> {
    const { name } = record.definition;
    const { definition, status, owed } = record;
    const body = JSON.stringify({ definition, status, owed });
    const change: DocumentChange = { do: "put", kind, key: name, body, expects: "any" };
    await this.#options.documents.write([change, ...(await this.#told(name, items))]);
  }

  async delete(names: readonly string[]): Promise<void> {
    const changes = [...new Set(names)].flatMap((key): readonly DocumentChange[] => [
      { do: "delete", kind, key, expects: "any" },
      { do: "delete", kind: historyKind, key, expects: "any" },
    ]);
    await this.#options.documents.write(changes);
  }

  async #told(name: string, items: readonly HistoryItem[]): Promise<readonly DocumentChange[]> {
    if (items.length === 0) return [];
    const all = [...(await this.history(name)), ...items].slice(-this.#options.limits.historyMax);
    return [{ do: "put", kind: historyKind, key: name, body: JSON.stringify(all), expects: "any" }];
  }

  #read(key: string, body: string): unknown {
    try {
      return JSON.parse(body);
    } catch (error) {
      this.#options.logger.error("a record is damaged and left out", { kind, key, error: String(error) });
      return null;
    }
  }
}
