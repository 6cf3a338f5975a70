import { closeSync } from "node:fs";
import { assert } from "@galatea/base";
import { openSocketPair } from "@galatea/base/system";
import { RunThreadClient } from "./run-thread-client.ts";

export interface RunThreadPoolOptions {
  readonly runThreadsMax: number;
  /** Starts the run thread, which owns the other end of the socket. The caller still owns the descriptor. */
  readonly open: (number: number, fd: number) => Promise<unknown>;
  /**
   * Called when a thread has ended or sent an invalid result. The run itself fails later, when the process ends, because that error is the
   * better explanation.
   */
  readonly onBroken: () => void;
}

/** The threads of one runner process. Each is opened when it is first needed, and kept. */
export class RunThreadPool {
  readonly #options: RunThreadPoolOptions;
  readonly #threads: (Promise<RunThreadClient> | null)[] = [];
  /** All opened threads. A thread that has ended stays in this set, because its pending run fails only when the process ends. */
  readonly #opened = new Set<RunThreadClient>();
  readonly #busy = new Set<number>();

  constructor(options: RunThreadPoolOptions) {
    this.#options = options;
  }

  /** Opens the first thread ahead of its first run. */
  async warmUp(): Promise<void> {
    await this.#thread(0);
  }

  /** Returns an idle thread: thread `home` if possible, otherwise one that is already open, otherwise a new one. */
  async take(home: number): Promise<RunThreadClient> {
    const { runThreadsMax } = this.#options;
    let free = -1;
    for (let position = 0; position < runThreadsMax; position += 1) {
      const number = (home + position) % runThreadsMax;
      if (this.#busy.has(number)) continue;
      if (free === -1) free = number;
      const isThere = this.#threads[number] !== undefined && this.#threads[number] !== null;
      if (!isThere && number !== home) continue;
      free = number;
      break;
    }
    assert(free !== -1, "more runs at once than there are threads");
    this.#busy.add(free);
    try {
      return await this.#thread(free);
    } catch (error) {
      this.#busy.delete(free);
      throw error;
    }
  }

  release(thread: RunThreadClient): void {
    this.#busy.delete(thread.number);
  }

  /** Rejects the pending runs of all threads. */
  fail(error: Error): void {
    for (const thread of this.#opened) thread.fail(error);
  }

  close(): void {
    for (const thread of this.#opened) thread.close();
  }

  #thread(number: number): Promise<RunThreadClient> {
    return (this.#threads[number] ??= this.#open(number));
  }

  async #open(number: number): Promise<RunThreadClient> {
    const pair = openSocketPair();
    const thread = new RunThreadClient(number, pair.ours, () => this.#onBroken(number));
    this.#opened.add(thread);
    try {
      await this.#options.open(number, pair.theirs);
      return thread;
    } catch (error) {
      this.#threads[number] = null;
      this.#opened.delete(thread);
      thread.close();
      throw error;
    } finally {
      closeSync(pair.theirs);
    }
  }

  #onBroken(number: number): void {
    this.#threads[number] = null;
    this.#options.onBroken();
  }
}
