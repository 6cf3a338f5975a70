import { Socket } from "node:net";
import { Client, type PoolConfig } from "pg";
import type { DatabaseAddress } from "./database-address.ts";
import { schemaName } from "./postgres-tables.ts";

const oldestVersion = 140_000;
const connectMsMax = 3000;
const statementMsMax = 5000;
/** Milliseconds after which a session without a response counts as lost. Longer than a statement may take. */
const responseMsMax = 6000;
/** Milliseconds without traffic after which TCP keep-alives check a session. */
const keepAliveMs = 10_000;
/**
 * Milliseconds without traffic after which a connection is closed. Without this limit, `end` would wait forever for an
 * unreachable peer.
 */
const trafficMsMax = 2 * responseMsMax;

/** Returns the settings of a connection. `applicationName` is shown in `pg_stat_activity`. */
export function clientConfig(
  { config }: DatabaseAddress,
  applicationName: string,
  settings: readonly string[] = [],
): PoolConfig {
  const set = [
    `search_path=${schemaName}`,
    "default_transaction_isolation=read\\ committed",
    "synchronous_commit=on",
    `statement_timeout=${statementMsMax}`,
    ...settings,
  ];
  return {
    ...config,
    application_name: applicationName,
    options: set.map((each) => `-c ${each}`).join(" "),
    stream: () => {
      const socket = new Socket();
      return socket.setTimeout(trafficMsMax, () => socket.destroy());
    },
    idleTimeoutMillis: trafficMsMax / 2,
    connectionTimeoutMillis: connectMsMax,
    query_timeout: responseMsMax,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
  };
}

/** Opens a session outside any pool. */
export async function openSession(
  address: DatabaseAddress,
  applicationName: string,
  settings: readonly string[] = [],
): Promise<Client> {
  const client = new Client(clientConfig(address, applicationName, settings));
  // Without a listener, a connection that ends between two queries would end the process. The next query reports the
  // error.
  client.on("error", () => {});
  await client.connect();
  return client;
}

/**
 * Opens the first session of a process. Rejects with an error text for users if the database is unreachable, older than
 * version 14, not in UTF-8, a replica, or behind a connection pooler.
 */
export async function openFirstSession(
  address: DatabaseAddress,
  applicationName: string,
  settings: readonly string[] = [],
): Promise<Client> {
  const client = await openSession(address, applicationName, settings).catch((error: unknown) => {
    throw new Error(`cannot open the records in ${address.shown}: ${(error as Error).message}`, { cause: error });
  });
  try {
    await checkServer(client, address);
    return client;
  } catch (error) {
    await client.end();
    throw error;
  }
}

interface ServerFacts {
  readonly version: number;
  readonly named: string;
  readonly encoding: string;
  readonly pid: number;
  readonly recovers: boolean;
}

async function checkServer(client: Client, { shown }: DatabaseAddress): Promise<void> {
  const sql = `SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS named,
    current_setting('server_encoding') AS encoding, pg_backend_pid() AS pid, pg_is_in_recovery() AS recovers`;
  const { rows } = await client.query<ServerFacts>(sql);
  const { version = 0, named = "", encoding = "", pid = 0, recovers = false } = rows[0] ?? {};
  // A pooler reports an invented process id to its clients. In transaction mode, the write lock would belong to a
  // session that other clients use, too.
  if ((client as Client & { readonly processID: number | null }).processID !== pid) {
    throw new Error(
      `${shown} is a connection pooler, such as PgBouncer; the lock of the records needs a session of the server itself: ` +
        "use the address of the PostgreSQL server",
    );
  }
  if (recovers) throw new Error(`${shown} is a replica, which takes no writes; use the address of the primary`);
  if (version < oldestVersion) throw new Error(`${shown} is PostgreSQL ${named}; Galatea needs 14 or newer`);
  if (encoding !== "UTF8") throw new Error(`${shown} has the encoding ${encoding}; Galatea needs UTF8`);
}
