import type { Logger } from "@galatea/base";
import { readAllJson, readJson, type DocumentChange, type Documents } from "../records/index.ts";
import type { AlarmDefinition, AlarmRecord, AlarmHistoryItem } from "./alarm.ts";

const kind = "alarm";
const historyKind = "alarm-history";
/** Document kind for the histories of deleted alarms. */
const deletedKind = "alarm-gone";

/** A deleted alarm whose history is still stored. */
export interface DeletedAlarm {
  readonly name: string;
  readonly kind: AlarmDefinition["kind"];
  readonly deletedMs: number;
}

interface DeletedAlarmRecord extends DeletedAlarm {
  readonly items: readonly AlarmHistoryItem[];
}

export interface AlarmStoreOptions {
  readonly documents: Documents;
  readonly limits: { readonly historyMax: number };
  readonly logger: Logger;
}

/**
 * Stores alarms and their histories as documents, by alarm name. Callers must serialize the writes of one alarm: each
 * write reads the history and replaces it, so that concurrent writes would lose history items.
 */
export class AlarmStore {
  readonly #options: AlarmStoreOptions;

  constructor(options: AlarmStoreOptions) {
    this.#options = options;
  }

  async listAlarms(): Promise<readonly AlarmRecord[]> {
    const all: AlarmRecord[] = [];
    for await (const record of this.#readAll<AlarmRecord>(kind)) all.push(record);
    return all;
  }

  async listDeleted(): Promise<readonly DeletedAlarm[]> {
    const all: DeletedAlarm[] = [];
    for await (const { name, kind: of, deletedMs } of this.#readAll<DeletedAlarmRecord>(deletedKind)) {
      all.push({ name, kind: of, deletedMs });
    }
    return all;
  }

  /** Returns the history items of an alarm, oldest first, including those of a deleted alarm with the same name. */
  async history(name: string): Promise<readonly AlarmHistoryItem[]> {
    const removed = await this.#deletedAlarmItems(name);
    return [...removed, ...(await this.#items(name))].slice(-this.#options.limits.historyMax);
  }

  async put(record: AlarmRecord, items: readonly AlarmHistoryItem[]): Promise<void> {
    const { name } = record.definition;
    const { definition, status, pendingActions } = record;
    const body = JSON.stringify({ definition, status, pendingActions });
    const change: DocumentChange = { do: "put", kind, key: name, body, expects: "any" };
    await this.#options.documents.write([change, ...(await this.#historyChanges(name, items))]);
  }

  /** Deletes alarms and keeps their histories until `forgetHistories` is called. */
  async delete(records: readonly AlarmRecord[], deletedMs: number): Promise<void> {
    const { historyMax } = this.#options.limits;
    const changes: DocumentChange[] = [];
    for (const { definition } of records) {
      const { name: key, kind: of } = definition;
      const item: AlarmHistoryItem = {
        atMs: deletedMs,
        kind: "ConfigurationUpdate",
        summary: `Alarm "${key}" deleted`,
        data: JSON.stringify({ version: "1.0", type: "Delete" }),
      };
      const items = [...(await this.history(key)), item].slice(-historyMax);
      const removed: DeletedAlarmRecord = { name: key, kind: of, deletedMs, items };
      changes.push(
        { do: "delete", kind, key, expects: "any" },
        { do: "delete", kind: historyKind, key, expects: "any" },
        { do: "put", kind: deletedKind, key, body: JSON.stringify(removed), expects: "any" },
      );
    }
    await this.#options.documents.write(changes);
  }

  async forgetHistories(names: readonly string[]): Promise<void> {
    const changes = names.map((key): DocumentChange => ({ do: "delete", kind: deletedKind, key, expects: "any" }));
    await this.#options.documents.write(changes);
  }

  async #historyChanges(name: string, items: readonly AlarmHistoryItem[]): Promise<readonly DocumentChange[]> {
    if (items.length === 0) return [];
    const all = [...(await this.#items(name)), ...items].slice(-this.#options.limits.historyMax);
    return [{ do: "put", kind: historyKind, key: name, body: JSON.stringify(all), expects: "any" }];
  }

  async #items(name: string): Promise<readonly AlarmHistoryItem[]> {
    return ((await this.#read(historyKind, name)) as readonly AlarmHistoryItem[] | null) ?? [];
  }

  async #deletedAlarmItems(name: string): Promise<readonly AlarmHistoryItem[]> {
    return ((await this.#read(deletedKind, name)) as DeletedAlarmRecord | null)?.items ?? [];
  }

  async #read(of: string, name: string): Promise<unknown> {
    const { documents, logger } = this.#options;
    const found = await documents.get(of, name);
    return found === null ? null : readJson(found, logger);
  }

  async *#readAll<Value>(of: string): AsyncGenerator<Value, void, void> {
    const { documents, logger } = this.#options;
    for await (const { value } of readAllJson<Value>(documents, of, { logger })) yield value;
  }
}
