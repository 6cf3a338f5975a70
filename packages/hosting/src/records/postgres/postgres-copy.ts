import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { systemClock, type Logger } from "@galatea/base";
import { copyPageMax, type CopiedDocument, type CopySource, type CopyTarget } from "../record-copy.ts";
import type { MetricCopySource } from "../metric-copy.ts";
import type { SqlValue } from "../statement.ts";
import type { DatabaseAddress } from "./database-address.ts";
import { openHolderSession } from "./holder-session.ts";
import { clientConfig } from "./server-session.ts";
import { databaseMessage } from "./database-errors.ts";
import { lockHolderSql, postgresMigrations, versionSql, withNumberedPlaceholders } from "./postgres-tables.ts";

const pageSql = `SELECT kind, key, version, body, (
    SELECT coalesce(jsonb_object_agg(name, value), '{}') FROM document_order o WHERE o.kind = d.kind AND o.key = d.key
  ) AS orders FROM document d WHERE (kind, key) > ($1, $2) ORDER BY kind, key LIMIT ${copyPageMax}`;

const insertSql = `INSERT INTO document
  SELECT kind, key, version, body FROM jsonb_to_recordset($1) AS page(kind text, key text, version bigint, body text)`;

const insertOrdersSql = `INSERT INTO document_order SELECT page.kind, o.key, o.value, page.key
  FROM jsonb_to_recordset($1) AS page(kind text, key text, orders jsonb), jsonb_each_text(page.orders) AS o`;

async function* pagesOf(client: Client): AsyncGenerator<readonly CopiedDocument[], void, void> {
  for (let [kind, key] = ["", ""]; ;) {
    const { rows } = await client.query<Omit<CopiedDocument, "version"> & { version: string }>(pageSql, [kind, key]);
    if (rows.length > 0) yield rows.map((row) => ({ ...row, version: Number(row.version) }));
    const last = rows.at(-1);
    if (last === undefined || rows.length < copyPageMax) return;
    ({ kind, key } = last);
  }
}

/** Returns a source that reads the tables of metrics in the client's transaction. */
const metricsOf = (client: Client): MetricCopySource => ({
  rows: async (sql, ...values) =>
    (await client.query<Record<string, SqlValue>>(withNumberedPlaceholders(sql), values)).rows,
});

async function versionOf(client: Client): Promise<number> {
  return Number((await client.query<{ number: string }>(versionSql)).rows[0]?.number);
}

/** Opens a snapshot of the records of a database. A platform may continue to write them. */
export async function openPostgresSource(address: DatabaseAddress): Promise<CopySource> {
  const client = new Client(clientConfig(address, "galatea copy"));
  client.on("error", () => {});
  try {
    await client.connect();
    const isInUse = (await client.query(lockHolderSql)).rows.length > 0;
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    return {
      version: await versionOf(client),
      isInUse,
      pages: () => pagesOf(client),
      metrics: metricsOf(client),
      async [Symbol.asyncDispose]() {
        await client.end();
      },
    };
  } catch (error) {
    await client.end();
    throw new Error(`cannot read the records in ${address.shown}: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * Acquires the write lock of a database without documents. Rejects if a platform uses it. The copy is one transaction.
 */
export async function openPostgresTarget(address: DatabaseAddress, logger: Logger): Promise<CopyTarget> {
  const holder = randomUUID();
  const options = { address, migrations: postgresMigrations, holder, clock: systemClock, logger };
  const { client } = await openHolderSession(options);
  try {
    await client.query("BEGIN");
    for (const [table, content] of [
      ["document", "records"],
      ["metric_series", "metrics"],
    ]) {
      const { rows } = await client.query(`SELECT 1 FROM ${table} LIMIT 1`);
      if (rows.length > 0) throw new Error(`${address.shown} has ${content}; use another database`);
    }
  } catch (error) {
    await client.end();
    throw error;
  }
  const insert = async (sql: string, values: readonly unknown[]) => {
    await client.query(sql, [...values]).catch((error: unknown) => {
      throw new Error(databaseMessage(error), { cause: error });
    });
  };
  return {
    metrics: {
      ...metricsOf(client),
      insert: ({ sql, values }) => insert(withNumberedPlaceholders(sql), values),
    },
    async write(page) {
      const text = JSON.stringify(page);
      await insert(insertSql, [text]);
      await insert(insertOrdersSql, [text]);
    },
    pages: () => pagesOf(client),
    async commit(version) {
      await client.query(
        "UPDATE document_feed SET version = greatest(version, $1), forgotten_version = greatest(version, $1)",
        [version],
      );
      await client.query("COMMIT");
    },
    async [Symbol.asyncDispose]() {
      await client.end();
    },
  };
}
