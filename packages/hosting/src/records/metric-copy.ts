import { createHash } from "node:crypto";
import type { SqlValue, Statement } from "./statement.ts";

/** Reads of the tables of metrics, whose SQL is that of SQLite and of PostgreSQL, with SQLite's placeholders. */
export interface MetricCopySource {
  rows(sql: string, ...values: SqlValue[]): Promise<readonly Readonly<Record<string, SqlValue>>[]>;
}

/** Empty tables of metrics. */
export interface MetricCopyTarget extends MetricCopySource {
  insert(statement: Pick<Statement, "sql" | "values">): Promise<void>;
}

/** The copied rows of one table. */
export interface CopiedTable {
  readonly kind: string;
  readonly count: number;
  readonly bytes: number;
  /** SHA-256 over the rows, in hexadecimal; equal for equal metrics in every database. */
  readonly sha256: string;
}

interface CopiedTableDefinition {
  readonly kind: string;
  readonly table: string;
  /** The column that rows ascend by. A copy has other ids than its source where the column is no column of `columns`. */
  readonly order: string;
  readonly columns: readonly string[];
  readonly pageMax: number;
}

const copiedTables: readonly CopiedTableDefinition[] = [
  { kind: "metric series", table: "metric_series", order: "number", columns: ["number", "body"], pageMax: 500 },
  {
    kind: "metric blocks",
    table: "metric_block",
    order: "id",
    columns: ["period_ms", "start_ms", "byte_count", "points"],
    pageMax: 64,
  },
];

/** Copies all metrics, reads them again from the target, and rejects if counts or checksums differ. Empty tables are not listed. */
export async function copyMetrics(source: MetricCopySource, target: MetricCopyTarget): Promise<readonly CopiedTable[]> {
  const copied: CopiedTable[] = [];
  for (const definition of copiedTables) {
    const { kind, table, columns } = definition;
    const row = `(${columns.map(() => "?").join(", ")})`;
    const read = await digestOf(source, definition, (page) =>
      target.insert({
        sql: `INSERT INTO ${table} (${columns.join(", ")}) VALUES ${page.map(() => row).join(", ")}`,
        values: page.flat(),
      }),
    );
    const written = await digestOf(target, definition);
    if (written.count !== read.count || written.sha256 !== read.sha256) {
      throw new Error(`the copy of ${kind} differs: ${written.count} of ${read.count}; nothing was copied`);
    }
    if (read.count > 0) copied.push(read);
  }
  return copied;
}

/** Reads a table page by page in its order. `onPage` gets the values of the columns of each row. */
async function digestOf(
  source: MetricCopySource,
  { kind, table, order, columns, pageMax }: CopiedTableDefinition,
  onPage: (page: readonly (readonly SqlValue[])[]) => Promise<void> = async () => {},
): Promise<CopiedTable> {
  const selected = [...new Set([order, ...columns])].join(", ");
  const sql = `SELECT ${selected} FROM ${table} WHERE ${order} > ? ORDER BY ${order} LIMIT ${pageMax}`;
  const hash = createHash("sha256");
  let [count, bytes] = [0, 0];
  for (let last = -1; ;) {
    const rows = await source.rows(sql, last);
    if (rows.length > 0) await onPage(rows.map((row) => columns.map((name) => row[name] ?? null)));
    for (const row of rows) {
      for (const name of columns) {
        const value = row[name] ?? null;
        // PostgreSQL's client has large integers as texts.
        const content = value instanceof Uint8Array ? value : Buffer.from(String(value));
        hash.update(`${content.byteLength} `).update(content);
        bytes += content.byteLength;
      }
      last = Number(row[order]);
    }
    count += rows.length;
    if (rows.length < pageMax) return { kind, count, bytes, sha256: hash.digest("hex") };
  }
}
