import type { Logger } from "../base/index.ts";
import { documentsListedMax, type DocumentChange, type DocumentPosition, type Documents } from "../records/index.ts";
import type { AlarmDefinition, AlarmRecord, HistoryItem } from "./alarm.ts";

const kind = "alarm";
const historyKind = "alarm-history";
/** Histories of alarms that are deleted. */
const goneKind = "alarm-gone";

/** An alarm that is deleted, whose history is still kept. */
export interface GoneAlarm {
  readonly name: string;
  readonly kind: AlarmDefinition["kind"];
  readonly deletedMs: number;
}

interface GoneRecord extends GoneAlarm {
  readonly items: readonly HistoryItem[];
}

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

  async all(): Promise<readonly AlarmRecord[]> {
    const records = (await this.#listed(kind)) as readonly (Omit<AlarmRecord, "owed"> & Partial<AlarmRecord>)[];
    // What earlier versions have recorded owes nothing.
    return records.map((record) => ({ owed: [], ...record }));
  }

  async gone(): Promise<readonly GoneAlarm[]> {
    const records = (await this.#listed(goneKind)) as readonly GoneRecord[];
    return records.map(({ name, kind: of, deletedMs }) => ({ name, kind: of, deletedMs }));
  }

  /** Oldest first; of a name that another alarm has had before, that one's too. */
  async history(name: string): Promise<readonly HistoryItem[]> {
    const gone = await this.#goneItems(name);
    return [...gone, ...(await this.#items(name))].slice(-this.#options.limits.historyMax);
  }

  async put(record: AlarmRecord, items: readonly HistoryItem[]): Promise<void> {
    const { name } = record.definition;
    const { definition, status, owed } = record;
    const body = JSON.stringify({ definition, status, owed });
    const change: DocumentChange = { do: "put", kind, key: name, body, expects: "any" };
    await this.#options.documents.write([change, ...(await this.#told(name, items))]);
  }

  /** The alarms go, what is told of them stays until it is forgotten. */
  async delete(records: readonly AlarmRecord[], deletedMs: number): Promise<void> {
    const { historyMax } = this.#options.limits;
    const changes: DocumentChange[] = [];
    for (const { definition } of records) {
      const { name: key, kind: of } = definition;
      const item: HistoryItem = {
        atMs: deletedMs,
        kind: "ConfigurationUpdate",
        summary: `Alarm "${key}" deleted`,
        data: JSON.stringify({ version: "1.0", type: "Delete" }),
      };
      const items = [...(await this.history(key)), item].slice(-historyMax);
      const gone: GoneRecord = { name: key, kind: of, deletedMs, items };
      changes.push(
        { do: "delete", kind, key, expects: "any" },
        { do: "delete", kind: historyKind, key, expects: "any" },
        { do: "put", kind: goneKind, key, body: JSON.stringify(gone), expects: "any" },
      );
    }
    await this.#options.documents.write(changes);
  }

  async forget(names: readonly string[]): Promise<void> {
    const changes = names.map((key): DocumentChange => ({ do: "delete", kind: goneKind, key, expects: "any" }));
    await this.#options.documents.write(changes);
  }

  async #told(name: string, items: readonly HistoryItem[]): Promise<readonly DocumentChange[]> {
    if (items.length === 0) return [];
    const all = [...(await this.#items(name)), ...items].slice(-this.#options.limits.historyMax);
    return [{ do: "put", kind: historyKind, key: name, body: JSON.stringify(all), expects: "any" }];
  }

  async #items(name: string): Promise<readonly HistoryItem[]> {
    const found = await this.#options.documents.get(historyKind, name);
    return found === null ? [] : ((this.#read(name, found.body) ?? []) as readonly HistoryItem[]);
  }

  async #goneItems(name: string): Promise<readonly HistoryItem[]> {
    const found = await this.#options.documents.get(goneKind, name);
    return found === null ? [] : ((this.#read(name, found.body) as GoneRecord | null)?.items ?? []);
  }

  /** One that cannot be read stays where it is, is told, and is not served. */
  async #listed(of: string): Promise<readonly unknown[]> {
    const { documents } = this.#options;
    const all: unknown[] = [];
    for (let after: DocumentPosition | null = null; ;) {
      const page = await documents.list({
        kind: of,
        order: null,
        isDescending: false,
        after,
        limit: documentsListedMax,
      });
      for (const { key, body } of page.documents) {
        const record = this.#read(key, body);
        if (record !== null) all.push(record);
      }
      if (page.next === null) return all;
      after = page.next;
    }
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
