import type { Client } from "pg";
import { delay, type Clock, type Logger } from "@galatea/base";
import type { Migration } from "../statement.ts";
import type { DatabaseAddress } from "./database-address.ts";
import { WriteLockLost } from "./database-errors.ts";
import {
  changedChannel,
  endOwnSessionsSql,
  lockHolderSql,
  schemaName,
  takeSql,
  tryLockSql,
  versionSql,
} from "./postgres-tables.ts";
import { openFirstSession, openSession } from "./server-session.ts";

export interface HolderOptions {
  readonly address: DatabaseAddress;
  readonly migrations: readonly Migration[];
  /** A random id of this process as the holder of the write lock. */
  readonly holder: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The state of the records when the session acquired the write lock. */
export interface SessionState {
  readonly version: number;
  readonly tombstoneCount: number;
  /** The number and results of the holder's last committed batch. */
  readonly batch: number;
  readonly results: readonly WriteOutcome[];
}

/** The outcome of a write: its version, or the index of the change whose document had another version. */
export type WriteOutcome = number | { readonly conflict: number };

/** The session that holds the write lock of the records and makes all writes. */
export interface HolderSession {
  readonly client: Client;
  /** The number of this session. The database rejects writes of all sessions except the latest. */
  readonly epoch: string;
  readonly state: SessionState;
}

/**
 * Milliseconds without traffic after which the database ends the holder's session, for example of a stopped process or a
 * machine without power. Another platform can then acquire the lock.
 */
const silenceMsMax = 10_000;
const lockTryEveryMs = 200;
/**
 * Maximum milliseconds to wait for the lock at start. Longer than `silenceMsMax`, and shorter than the start timeout of
 * service managers (systemd: 90 s).
 */
const lockWaitMsMax = 15_000;
const holderSettings = [`idle_session_timeout=${silenceMsMax}`, "tcp_keepalives_idle=5", "tcp_keepalives_interval=2"];

/**
 * Opens the first session: acquires the write lock and creates the tables. Rejects with WriteLockLost if another platform
 * holds the lock. Rejects with another error if a newer release wrote the database or `openFirstSession` rejects it.
 */
export async function openHolderSession(options: HolderOptions): Promise<HolderSession> {
  const client = await openFirstSession(options.address, applicationNameOf(options), holderSettings);
  try {
    await lockAtStart(client, options);
    await applyMigrations(client, options);
    return await take(client, options, true);
  } catch (error) {
    await client.end();
    throw error;
  }
}

/**
 * Opens another session after the previous one was lost. Rejects with WriteLockLost if another platform has acquired the
 * lock since. After any other error, a later attempt may succeed.
 */
export async function reopenHolderSession(options: HolderOptions): Promise<HolderSession> {
  const client = await openSession(options.address, applicationNameOf(options), holderSettings);
  try {
    if (!(await tryLock(client))) {
      const { rows } = await client.query<{ holder: string }>("SELECT holder FROM document_feed");
      if (rows[0]?.holder !== options.holder) throw takenOver(options.address);
      // The previous session of this process still holds the lock: the server has not noticed its end, or still runs its
      // statement.
      await client.query(endOwnSessionsSql, [applicationNameOf(options)]);
      if (!(await tryLock(client)))
        throw new Error("the previous PostgreSQL session of this process still holds the lock of the records");
    }
    return await take(client, options, false);
  } catch (error) {
    await client.end();
    throw error;
  }
}

const applicationNameOf = ({ holder }: HolderOptions) => `galatea ${holder}`;

async function tryLock(client: Client): Promise<boolean> {
  return (await client.query<{ locked: boolean }>(tryLockSql)).rows[0]?.locked === true;
}

/**
 * Acquires the lock at start. Waits up to 15 s for the session of a killed or unreachable platform to end. Rejects with
 * WriteLockLost after that time, or earlier if the holder's session is active.
 */
async function lockAtStart(client: Client, { address, clock, logger }: HolderOptions): Promise<void> {
  let seen: { readonly applicationName: string; readonly activeMs: number } | null = null;
  for (const untilNs = clock.monotonicNs() + lockWaitMsMax * 1e6; ;) {
    if (await tryLock(client)) return;
    const { rows } = await client.query<{
      application_name: string;
      address: string | null;
      state_change: Date | null;
    }>(lockHolderSql);
    const [holder] = rows;
    if (holder !== undefined) {
      const [applicationName, activeMs] = [holder.application_name, holder.state_change?.getTime() ?? 0];
      const isAlive = seen !== null && seen.applicationName === applicationName && activeMs > seen.activeMs;
      if (isAlive || clock.monotonicNs() > untilNs) throw taken(address, holder.address);
      if (seen === null) logger.info("waiting for the session of another platform to end", { records: address.shown });
      seen ??= { applicationName, activeMs };
    }
    await delay(clock, lockTryEveryMs, null);
  }
}

function taken({ shown }: DatabaseAddress, address: string | null = null): WriteLockLost {
  const from = address === null ? "" : ` from ${address}`;
  return new WriteLockLost(`another platform${from} uses the records in ${shown}; stop it, or use another database`);
}

function takenOver({ shown }: DatabaseAddress): WriteLockLost {
  return new WriteLockLost(
    `another platform has taken over the records in ${shown}: this one can write nothing any more and has to stop`,
  );
}

async function applyMigrations(client: Client, { address, migrations }: HolderOptions): Promise<void> {
  await client.query(`CREATE SCHEMA IF NOT EXISTS ${schemaName}`);
  await client.query("CREATE TABLE IF NOT EXISTS applied_migration (id text PRIMARY KEY)");
  const { rows } = await client.query<{ id: string }>("SELECT id FROM applied_migration");
  const applied = new Set(rows.map(({ id }) => id));
  const unknown = [...applied].filter((id) => !migrations.some((each) => each.id === id));
  if (unknown.length > 0) {
    throw new Error(
      `the records in ${address.shown} are of a newer release of Galatea: they list the migrations ${unknown.join(", ")}; ` +
        "start that release, or use another database",
    );
  }
  for (const { id, sql } of migrations.filter((each) => !applied.has(each.id))) {
    // PostgreSQL runs the statements of one query in one transaction.
    await client.query(`${sql}; INSERT INTO applied_migration VALUES ('${id}')`);
  }
}

interface TakenRow {
  readonly epoch: string;
  readonly batch: string;
  readonly results: readonly WriteOutcome[];
  readonly version: string;
  readonly tombstone_count: string;
}

async function take(client: Client, options: HolderOptions, fromAnyone: boolean): Promise<HolderSession> {
  const { rows } = await client.query<TakenRow>(takeSql, [options.holder, fromAnyone]);
  const [row] = rows;
  if (row === undefined) throw takenOver(options.address);
  await client.query(`LISTEN ${changedChannel}`);
  const { epoch, batch, results, version, tombstone_count } = row;
  const state = { version: Number(version), tombstoneCount: Number(tombstone_count), batch: Number(batch), results };
  return { client, epoch, state };
}

/**
 * Reads the current version. The query shows the server that this session is alive, and this process that the session
 * works.
 */
export async function heartbeat({ client }: HolderSession): Promise<number> {
  const { rows } = await client.query<{ number: string }>(versionSql);
  return Number(rows[0]?.number);
}
