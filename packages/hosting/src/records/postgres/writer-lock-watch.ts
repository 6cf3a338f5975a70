import type { Client } from "pg";
import { delay, type Clock, type Logger } from "@galatea/base";
import type { DatabaseAddress } from "./database-address.ts";
import { lockStateSql } from "./postgres-tables.ts";
import { openFirstSession, openSession } from "./server-session.ts";

export interface WriterLockWatchOptions {
  readonly address: DatabaseAddress;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Called when the holder of the lock changes, with its address as the database sees it; null: unknown. */
  readonly onHolder: (address: string | null) => void;
}

const lookEveryMs = 200;
/** Milliseconds in which a holder whose connection broke acquires the lock again. */
const freeMs = 1000;
/**
 * Milliseconds to wait after a restart of the database. The holder pauses up to a second between its attempts, and must be
 * able to reconnect first.
 */
const freeAfterOutageMs = 5000;
const reconnectEveryMs = 500;

interface LockState {
  readonly is_in_recovery: boolean;
  readonly is_held: boolean;
  readonly address: string | null;
}

/**
 * Waits until no session has held the write lock for one second, or for five seconds if the database was unreachable. Does
 * not acquire the lock, so another process may be first. Rejects with the signal's reason, or if the first session cannot
 * be opened.
 */
export async function waitForWriterLock(options: WriterLockWatchOptions): Promise<void> {
  const { address, clock, logger, signal, onHolder } = options;
  const applicationName = "galatea standby";
  let client = await openFirstSession(address, applicationName);
  for (let freeForMs = freeMs; ; freeForMs = freeAfterOutageMs) {
    try {
      return await lockIsFree(client, options, freeForMs);
    } catch (error) {
      signal.throwIfAborted();
      onHolder(null);
      logger.warning("the connection to the records is lost; reconnecting", {
        records: address.shown,
        error: String(error),
      });
    } finally {
      await client.end().catch(() => {});
    }
    for (let opened: Client | null = null; opened === null;) {
      await delay(clock, reconnectEveryMs, signal);
      opened = await openSession(address, applicationName).catch(() => null);
      if (opened !== null) client = opened;
    }
    logger.info("connected to the records again", { records: address.shown });
  }
}

async function lockIsFree(
  client: Client,
  { clock, signal, onHolder }: WriterLockWatchOptions,
  freeForMs: number,
): Promise<void> {
  let holder: string | null = null;
  let freeSinceNs: number | null = null;
  for (;;) {
    const { rows } = await client.query<LockState>(lockStateSql);
    const [state] = rows;
    const nowNs = clock.monotonicNs();
    // A replica does not see locks of its primary.
    const isFree = state !== undefined && !state.is_held && !state.is_in_recovery;
    freeSinceNs = isFree ? (freeSinceNs ?? nowNs) : null;
    if (freeSinceNs !== null && nowNs - freeSinceNs >= freeForMs * 1e6) return;
    const address = state?.address ?? null;
    if (address !== holder) onHolder(address);
    holder = address;
    await delay(clock, lookEveryMs, signal);
  }
}
