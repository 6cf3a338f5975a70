import { delay, ChangeNotifier, type Clock, type Logger } from "@galatea/base";
import { DocumentConflict, type DocumentChange } from "../documents.ts";
import { RecordsError } from "../statement.ts";
import {
  DatabaseUnavailable,
  databaseMessage,
  queryFailure,
  WriteLockLost,
  serverDiskCode,
} from "./database-errors.ts";
import {
  heartbeat,
  openHolderSession,
  reopenHolderSession,
  type SessionState,
  type HolderOptions,
  type HolderSession,
  type WriteOutcome,
} from "./holder-session.ts";
import { writeSql } from "./postgres-tables.ts";

export interface WriterOptions extends HolderOptions {
  /** Number of deletions that are kept for readers of changes. Above it, the older half is forgotten. */
  readonly deletionsMax: number;
}

interface PendingWrite {
  readonly changes: readonly DocumentChange[];
  /** True if every change expects a version. Only such a write is safe to retry. */
  readonly isExpecting: boolean;
  readonly expiresNs: number;
  readonly resolve: (version: number) => void;
  readonly reject: (error: Error) => void;
}

const pendingMax = 10_000;
const batchWritesMax = 200;
const batchCharactersMax = 8 * 2 ** 20;
/** Maximum milliseconds that a write waits for a lost connection. */
const unavailableMsMax = 5000;
const heartbeatEveryMs = 1000;
const pauseMsMin = 50;
const pauseMsMax = 1000;

/**
 * Writes documents through one session, which holds the write lock of the records. Pending writes are committed in order,
 * many in one transaction. After a lost session, the next session reads if the last transaction was committed.
 */
export class DocumentWriter implements AsyncDisposable {
  readonly #options: WriterOptions;
  /** Wakes the write loop. */
  readonly #wake = new ChangeNotifier();
  readonly #changed = new ChangeNotifier();
  readonly #lost = Promise.withResolvers<Error>();
  readonly #queue: PendingWrite[] = [];
  /**
   * Number of writes at the head of the queue that are committed one by one, because one write of their batch was
   * rejected.
   */
  #aloneCount = 0;
  #sent: { readonly number: number; readonly writes: readonly PendingWrite[] } | null = null;
  #number = 0;
  #version = 0;
  #tombstoneCount = 0;
  #isClosing = false;
  /** The error of all further writes; null while writes are possible. */
  #failure: Error | null = null;
  /** The number of the first session, which is higher than those of all earlier holders. */
  epoch = 0;
  #running: Promise<void> = Promise.resolve();

  private constructor(options: WriterOptions) {
    this.#options = options;
  }

  static async open(options: WriterOptions): Promise<DocumentWriter> {
    const writer = new DocumentWriter(options);
    const session = await openHolderSession(options);
    writer.epoch = Number(session.epoch);
    writer.#setState(session.state);
    writer.#running = writer.#run(session);
    return writer;
  }

  /** Resolves when this process must not write any more: another platform has the write lock, or commits were lost. */
  get lost(): Promise<Error> {
    return this.#lost.promise;
  }

  /** Resolves at the next change of a document by any process. */
  changed(): Promise<void> {
    return this.#changed.nextChange();
  }

  write(changes: readonly DocumentChange[]): Promise<number> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#queue.length >= pendingMax) {
      return Promise.reject(new DatabaseUnavailable(`${pendingMax} writes wait for the database`, null));
    }
    const isExpecting = changes.every(({ expects }) => expects !== "any");
    const expiresNs = this.#clock.monotonicNs() + unavailableMsMax * 1e6;
    return new Promise((resolve, reject) => {
      this.#queue.push({ changes, isExpecting, expiresNs, resolve, reject });
      this.#wake.notify();
    });
  }

  /** Commits the pending writes before closing, or rejects them if there is no connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    this.#wake.notify();
    await this.#running;
  }

  get #clock(): Clock {
    return this.#options.clock;
  }

  get #log(): Logger {
    return this.#options.logger;
  }

  async #run(first: HolderSession): Promise<void> {
    try {
      for (let session: HolderSession | null = first; session !== null;) {
        const error = await this.#serve(session);
        const closed = session.client.end().catch(() => {});
        if (error === null) return await closed;
        session = await this.#reconnected(error);
      }
    } catch (error) {
      this.#fail(error as Error);
      this.#lost.resolve(error as Error);
    } finally {
      if (this.#failure === null) this.#fail(new Error("the records are closed"));
    }
  }

  /** Writes until the session is lost, and resolves with the reason. Resolves with null when the writer closes. */
  async #serve(session: HolderSession): Promise<unknown> {
    const { client } = session;
    let ended: Error | null = null;
    client.on("error", (error) => {
      ended = error;
      this.#wake.notify();
    });
    client.on("notification", ({ payload }) => this.#noteVersion(Number(payload)));
    try {
      for (;;) {
        const woken = this.#wake.nextChange();
        if (ended !== null) return ended;
        if (this.#queue.length > 0) await this.#commit(session, this.#nextBatch());
        else if (this.#isClosing) return null;
        else if (await this.#waitForHeartbeat(woken)) this.#noteVersion(await heartbeat(session));
      }
    } catch (error) {
      if (error instanceof WriteLockLost) throw error;
      return error;
    }
  }

  /** Resolves with true if the next heartbeat is due before anything wakes the loop. */
  async #waitForHeartbeat(woken: Promise<void>): Promise<boolean> {
    let isDue = false;
    using _timer = this.#clock.timer(heartbeatEveryMs, () => {
      isDue = true;
      this.#wake.notify();
    });
    await woken;
    return isDue;
  }

  #noteVersion(version: number): void {
    if (version <= this.#version) return;
    this.#version = version;
    this.#changed.notify();
  }

  #nextBatch(): readonly PendingWrite[] {
    const countMax = this.#aloneCount > 0 ? 1 : Math.min(this.#queue.length, batchWritesMax);
    this.#aloneCount = Math.max(0, this.#aloneCount - 1);
    let count = 0;
    for (let characters = 0; count < countMax; count += 1) {
      for (const change of this.#queue[count]!.changes) if (change.do === "put") characters += change.body.length;
      if (characters > batchCharactersMax && count > 0) break;
    }
    return this.#queue.splice(0, count);
  }

  /** Commits a batch. Rejects if the session is lost; `#sent` is the batch then. */
  async #commit(session: HolderSession, writes: readonly PendingWrite[]): Promise<void> {
    const number = (this.#number += 1);
    this.#sent = { number, writes };
    const { deletionsMax } = this.#options;
    const tombstonesKept = this.#tombstoneCount > deletionsMax ? Math.ceil(deletionsMax / 2) : null;
    try {
      const values = [session.epoch, number, JSON.stringify(writes.map(encoded)), tombstonesKept];
      const { rows } = await session.client.query<{ results: readonly WriteOutcome[] }>(writeSql, values);
      if (tombstonesKept !== null) this.#tombstoneCount = tombstonesKept;
      this.#resolveBatch(writes, rows[0]?.results ?? []);
    } catch (error) {
      const failure = queryFailure(error);
      // The next session detects another holder of the lock, or reads if the batch was committed.
      if (failure === "lost" || failure === "taken") throw error;
      this.#sent = null;
      if (failure === "retry") this.#requeue(writes, error);
      else if (writes.length > 1) {
        this.#queue.unshift(...writes);
        this.#aloneCount = writes.length;
      } else writes[0]?.reject(refusal(error));
    }
  }

  #resolveBatch(writes: readonly PendingWrite[], results: readonly WriteOutcome[]): void {
    this.#sent = null;
    for (const [index, { changes, resolve, reject }] of writes.entries()) {
      const outcome = results[index]!;
      if (typeof outcome === "number") {
        this.#tombstoneCount += changes.filter((change) => change.do === "delete").length;
        this.#noteVersion(outcome);
        resolve(outcome);
      } else {
        const { kind, key } = changes[outcome.conflict]!;
        reject(new DocumentConflict(kind, key));
      }
    }
  }

  /** Requeues the writes that are safe to retry, and rejects the others. None of them was committed. */
  #requeue(writes: readonly PendingWrite[], cause: unknown): void {
    const nowNs = this.#clock.monotonicNs();
    const repeated = writes.filter(({ isExpecting, expiresNs }) => isExpecting && expiresNs > nowNs);
    const rejected = new Set(writes).difference(new Set(repeated));
    for (const { reject } of rejected) reject(new DatabaseUnavailable("the write was not made", cause));
    this.#queue.unshift(...repeated);
  }

  /**
   * Opens the next session. Resolves with null when the writer closes. Rejects with WriteLockLost if another platform has
   * the lock or commits were lost.
   */
  async #reconnected(reason: unknown): Promise<HolderSession | null> {
    const { address } = this.#options;
    const sinceNs = this.#clock.monotonicNs();
    this.#log.warning("the connection to the records is lost; reconnecting", {
      records: address.shown,
      error: String(reason),
    });
    for (let pauseMs = pauseMsMin; !this.#isClosing; pauseMs = Math.min(2 * pauseMs, pauseMsMax)) {
      try {
        const session = await reopenHolderSession(this.#options);
        this.#resume(session.state);
        const awayMs = Math.round((this.#clock.monotonicNs() - sinceNs) / 1e6);
        this.#log.info("connected to the records again", { records: address.shown, awayMs });
        return session;
      } catch (error) {
        if (error instanceof WriteLockLost) throw error;
        this.#expire(error);
        await delay(this.#clock, pauseMs, null);
      }
    }
    return null;
  }

  /** Resolves or requeues the writes of the batch whose response was lost. */
  #resume({ version, tombstoneCount, batch, results }: SessionState): void {
    if (version < this.#version) {
      throw new WriteLockLost(
        `the records in ${this.#options.address.shown} have lost commits: they are of version ${version}, and ` +
          `${this.#version} was acknowledged; the platform has to start again`,
      );
    }
    const sent = this.#sent;
    if (sent?.number === batch) this.#resolveBatch(sent.writes, results);
    else if (sent !== null) {
      this.#sent = null;
      this.#requeue(sent.writes, null);
    }
    this.#setState({ version, tombstoneCount });
    this.#changed.notify();
  }

  #setState({ version, tombstoneCount }: Pick<SessionState, "version" | "tombstoneCount">): void {
    this.#version = version;
    this.#tombstoneCount = tombstoneCount;
  }

  /** Rejects writes that have waited too long. */
  #expire(cause: unknown): void {
    const nowNs = this.#clock.monotonicNs();
    const isExpired = ({ expiresNs }: PendingWrite) => expiresNs <= nowNs;
    for (const { reject } of this.#sent?.writes.filter(isExpired) ?? []) {
      reject(new DatabaseUnavailable("whether the write was made is unknown: the connection was lost", cause));
    }
    const expired = this.#queue.findIndex((each) => !isExpired(each));
    for (const { reject } of this.#queue.splice(0, expired === -1 ? this.#queue.length : expired)) {
      reject(new DatabaseUnavailable("the write was not made: the database is not reachable", cause));
    }
  }

  #fail(error: Error): void {
    this.#failure = error;
    for (const { reject } of [...(this.#sent?.writes ?? []), ...this.#queue.splice(0)]) reject(error);
    this.#sent = null;
  }
}

/** Encodes the changes of a write for `write_documents`. Version 0 means that no document is expected. */
function encoded({ changes }: PendingWrite): readonly object[] {
  return changes.map((change) => ({
    d: change.do,
    k: wellFormed(change.kind),
    i: wellFormed(change.key),
    ...(change.expects === "any" ? {} : { e: change.expects === "absent" ? 0 : change.expects }),
    ...(change.do === "put"
      ? {
          b: wellFormed(change.body),
          o: Object.fromEntries(
            Object.entries(change.orders ?? {}).map(([name, value]) => [wellFormed(name), wellFormed(value)]),
          ),
        }
      : {}),
  }));
}

/** Replaces lone surrogates, as SQLite does, because UTF-8 cannot encode them. */
const wellFormed = (text: string) => text.toWellFormed();

function refusal(error: unknown): Error {
  const refused = new RecordsError(databaseMessage(error), 0);
  return Object.assign(refused, { cause: error, code: serverDiskCode(error) });
}
