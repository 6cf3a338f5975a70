import { Worker } from "node:worker_threads";
import { assert, InferenceError } from "../base/index.ts";
import { makeMailboxMemory, mailboxOf, mailState, type RunMailbox } from "./run-mailbox.ts";
import type { Placement } from "./placement.ts";
import type { RunWorkerData } from "./run-worker.ts";

/** The parameters of OrtApi's `Run` in their order: addresses and counts. */
export type RunValues = readonly [bigint, bigint, bigint, bigint, number, bigint, number, bigint];

/**
 * Threads that run models and nothing else, as many as there may be runs at once. libuv's pool takes its threads in turn: each
 * run began on another one, with cold caches, next to wherever it was woken. Here a session comes back to the same thread.
 */
export interface RunThreads extends AsyncDisposable {
  /** Starts a session's thread, so that its first run need not wait for that. */
  prepare(placement: Placement | null): void;
  /**
   * Calls `Run`; resolves to its OrtStatus, 0 for success. The caller keeps all memory alive until then, and asks for no more
   * than `threadCount` at once. Rejects (INTERNAL) when the thread ended instead.
   */
  run(values: RunValues, placement: Placement | null): Promise<bigint>;
}

export interface RunThreadsOptions {
  readonly runAddress: bigint;
  readonly threadCount: number;
  /** Processors this process may use. */
  readonly processors: readonly number[];
}

export function openRunThreads(options: RunThreadsOptions): RunThreads {
  const threads: (RunThread | null)[] = Array.from({ length: options.threadCount }, () => null);
  const anywhere = options.processors;

  function threadAt(index: number): RunThread {
    return (threads[index] ??= new RunThread(options.runAddress, () => (threads[index] = null)));
  }

  /** The home thread, else the next one behind it that is free. */
  function freeThread(home: number): RunThread {
    for (let place = 0; place < options.threadCount; place += 1) {
      const thread = threadAt((home + place) % options.threadCount);
      if (!thread.busy) return thread;
    }
    throw new Error("more runs at once than there are threads");
  }

  return {
    prepare(placement) {
      threadAt((placement?.home ?? 0) % options.threadCount);
    },
    run(values, placement) {
      return freeThread(placement?.home ?? 0).run(values, placement?.caller ?? anywhere);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(threads.map(async (thread) => await thread?.[Symbol.asyncDispose]()));
    },
  };
}

class RunThread implements AsyncDisposable {
  busy = false;
  readonly #mailbox: RunMailbox;
  readonly #worker: Worker;
  readonly #exited = Promise.withResolvers<void>();
  #processors: readonly number[] = [];
  #failRun: ((error: InferenceError) => void) | null = null;

  constructor(runAddress: bigint, onExit: () => void) {
    const memory = makeMailboxMemory();
    this.#mailbox = mailboxOf(memory);
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    this.#worker = new Worker(new URL(`./run-worker.${extension}`, import.meta.url), {
      workerData: { memory, runAddress } satisfies RunWorkerData,
    });
    // A run keeps the process alive, an idle thread does not.
    this.#worker.unref();
    let cause: unknown = null;
    this.#worker.on("error", (error) => (cause = error));
    this.#worker.on("exit", () => {
      onExit();
      this.#failRun?.(new InferenceError("INTERNAL", "a thread that runs models has ended", { cause }));
      this.#exited.resolve();
    });
  }

  async run(values: RunValues, processors: readonly number[]): Promise<bigint> {
    this.busy = true;
    this.#worker.ref();
    const mailbox = this.#mailbox;
    for (let index = 0; index < values.length; index += 1) mailbox.values[index] = BigInt(values[index]!);
    this.#moveTo(processors);
    mailbox.ended[0] = 0;
    Atomics.store(mailbox.state, 0, mailState.run);
    Atomics.notify(mailbox.state, 0);
    try {
      await this.#ended();
      return mailbox.status[0] as bigint;
    } finally {
      this.busy = false;
      this.#failRun = null;
      this.#worker.unref();
    }
  }

  #ended(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#failRun = reject;
      const wait = Atomics.waitAsync(this.#mailbox.ended, 0, 0);
      if (wait.async) void wait.value.then(() => resolve());
      else resolve();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    assert(!this.busy, "a run thread is stopped while it runs");
    this.#worker.ref();
    Atomics.store(this.#mailbox.state, 0, mailState.stop);
    Atomics.notify(this.#mailbox.state, 0);
    await this.#exited.promise;
  }

  #moveTo(processors: readonly number[]): void {
    const { moves, processors: mask } = this.#mailbox;
    moves[0] = processors === this.#processors ? 0 : 1;
    if (moves[0] === 0) return;
    this.#processors = processors;
    mask.fill(0);
    for (const processor of processors) {
      const place = processor >> 3;
      if (place < mask.length) mask[place] = (mask[place] as number) | (1 << (processor & 7));
    }
  }
}
