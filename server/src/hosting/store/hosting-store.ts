import type { Logger } from "../../base/index.ts";
import type { Migration, Records } from "../../records/index.ts";
import { metricMigrations } from "../series/index.ts";

export const hostingMigrations: readonly Migration[] = [
  {
    id: "hosting-1",
    sql: `CREATE TABLE hosting_record (
      kind TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (kind, key)
    ) STRICT, WITHOUT ROWID`,
  },
  // Metrics were kept here; now they have a database of their own.
  ...metricMigrations,
  { id: "hosting-2", sql: "DROP TABLE metric_block; DROP TABLE metric_series" },
];

export type HostingKind = "model" | "endpoint-config" | "endpoint" | "tags" | "role" | "policy";

export interface RecordTableOptions<Value> {
  readonly kind: HostingKind;
  /** Makes a record of what this release or an earlier one stored; throws for what is none. Absent for a form that never changed. */
  readonly read?: (stored: unknown) => Value;
  readonly logger: Logger;
}

/** Records of one kind, held in memory and written through: a change is acknowledged when it is on disk. */
export class RecordTable<Value> {
  readonly #records: Records;
  readonly #kind: HostingKind;
  readonly #values = new Map<string, Value>();

  /** A record that cannot be read stays where it is, is told, and is not served. */
  constructor(records: Records, { kind, read = (stored) => stored as Value, logger }: RecordTableOptions<Value>) {
    this.#records = records;
    this.#kind = kind;
    for (const { key, body } of records.rows("SELECT key, body FROM hosting_record WHERE kind = ?", kind)) {
      try {
        this.#values.set(String(key), read(JSON.parse(String(body))));
      } catch (error) {
        logger.error("a record is damaged and left out", { kind, key: String(key), error: String(error) });
      }
    }
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: string): Value | undefined {
    return this.#values.get(key);
  }

  values(): IterableIterator<Value> {
    return this.#values.values();
  }

  /** Visible at once; when the write fails it is taken back and the error thrown. */
  async put(key: string, value: Value): Promise<void> {
    const before = this.#values.get(key);
    this.#values.set(key, value);
    try {
      const sql = "INSERT INTO hosting_record VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET body = excluded.body";
      await this.#records.write([{ sql, values: [this.#kind, key, JSON.stringify(value)] }]);
    } catch (error) {
      if (this.#values.get(key) === value) {
        if (before === undefined) this.#values.delete(key);
        else this.#values.set(key, before);
      }
      throw error;
    }
  }

  async delete(key: string): Promise<void> {
    const before = this.#values.get(key);
    this.#values.delete(key);
    try {
      await this.#records.write([
        { sql: "DELETE FROM hosting_record WHERE kind = ? AND key = ?", values: [this.#kind, key] },
      ]);
    } catch (error) {
      if (before !== undefined && !this.#values.has(key)) this.#values.set(key, before);
      throw error;
    }
  }
}
