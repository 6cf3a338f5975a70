import { createHash } from "node:crypto";
import type { SqlValue, Statement } from "./statement.ts";

/** Reads tables of metrics. The SQL must be valid in SQLite and PostgreSQL; placeholders are SQLite's. */
export interface MetricCopySource {
  rows(sql: string, ...values: SqlValue[]): Promise<readonly Readonly<Record<string, SqlValue>>[]>;
}

/** Empty tables of metrics, to which metrics are copied. */
export interface MetricCopyTarget extends MetricCopySource {
  insert(statement: Pick<Statement, "sql" | "values">): Promise<void>;
}

/** A summary of the copied rows of one table. */
export interface CopiedTable {
  readonly kind: string;
  readonly count: number;
  readonly bytes: number;
  /** SHA-256 over the rows, in hexadecimal. It does not depend on the database. */
  readonly sha256: string;
}

interface CopiedTableDefinition {
  readonly kind: string;
  readonly table: string;
  /** The column by which rows are sorted. If it is not in `columns`, the copy has new values in it. */
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

/**
 * Copies all metrics and reads them again from the target. Rejects if counts or checksums differ. The result omits empty tables.
 */
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

/** Reads a table page by page in its order, and computes the summary. `onPage` receives the column values of each row. */
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
        // PostgreSQL's client returns large integers as texts.
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
