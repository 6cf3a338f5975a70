import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { delay, ChangeNotifier, rejectOnAbort, TaskGroup, type Clock, type Logger } from "@galatea/base";
import { listSnapshots } from "./snapshot-files.ts";
import type { SnapshotThreadData } from "./snapshot-thread.ts";

export interface SnapshotOptions {
  /** An existing folder. A damaged database is restored from the newest undamaged snapshot in it. */
  readonly folder: string;
  /** Number of days whose newest snapshot is kept. If 0, no snapshots are made. */
  readonly daysKept: number;
  /** Minimum milliseconds between two snapshots. A snapshot is made only after a commit. */
  readonly everyMs: number;
  /** Returns the free bytes on the folder's disk. */
  readonly freeBytes: (folder: string) => number;
  readonly clock: Clock;
}

/** Minimum milliseconds between the start or a commit and a snapshot, so that a burst of writes can end. */
const settleMs = 10_000;

/** Makes snapshots of an open database, each in a separate thread. */
export class Snapshots implements AsyncDisposable {
  readonly #path: string;
  readonly #options: SnapshotOptions;
  readonly #logger: Logger;
  readonly #committed = new ChangeNotifier();
  readonly #tasks: TaskGroup;

  constructor(path: string, options: SnapshotOptions, logger: Logger) {
    this.#path = path;
    this.#options = options;
    this.#logger = logger;
    this.#tasks = new TaskGroup((error) =>
      logger.error("making snapshots has stopped", { path, error: String(error) }),
    );
    this.#tasks.run((closing) => this.#run(closing));
  }

  /** Reports a commit. A snapshot follows when the last one is old enough. */
  noteCommit(): void {
    this.#committed.notify();
  }

  async #run(closing: AbortSignal): Promise<void> {
    const { folder, everyMs, clock } = this.#options;
    let lastMs = listSnapshots(this.#path, folder)[0]?.madeMs ?? -Infinity;
    // The previous run may have ended before its last writes were in a snapshot.
    for (let committed = Promise.resolve(); ;) {
      await rejectOnAbort(committed, closing);
      await delay(clock, Math.min(everyMs, Math.max(settleMs, lastMs + everyMs - clock.epochMs())), closing);
      committed = this.#committed.nextChange();
      lastMs = clock.epochMs();
      await this.#make(lastMs);
    }
  }

  async #make(nowMs: number): Promise<void> {
    const { folder, daysKept, freeBytes } = this.#options;
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    try {
      const workerData: SnapshotThreadData = {
        path: this.#path,
        folder,
        daysKept,
        nowMs,
        freeBytes: freeBytes(folder),
      };
      await once(new Worker(new URL(`./snapshot-thread.${extension}`, import.meta.url), { workerData }), "exit");
    } catch (error) {
      this.#logger.warning("no snapshot of a database was made", { path: this.#path, error: String(error) });
    }
  }

  /** Waits for a snapshot in progress, because SQLite cannot be interrupted. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
  }
}
