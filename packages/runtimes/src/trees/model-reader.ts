import { Worker } from "node:worker_threads";
import { InferenceError, Semaphore } from "@galatea/base";
import type { TreeModel } from "./evaluation/evaluator.ts";
import type { ReadingReply } from "./reading-thread.ts";
import type { ReadTreeModelOptions } from "./read-tree-model.ts";

/** Limit of the JavaScript heap of a thread. Typed arrays, which are most of a model, are not included. */
const heapMebibytesMax = 1024;
const threadsMax = 2;
/** Maximum size of a file after which its thread is reused; after a larger file, the thread would keep too much garbage. */
const keptBytesMax = 16 * 2 ** 20;
/**
 * Number of models after which a thread is replaced. A mostly idle thread may never collect its garbage, and each model that it has read
 * keeps 10 GB of address space, but no memory.
 */
const readingsMax = 500;

export interface ReadingOptions {
  /** Length of the file, in bytes. */
  readonly byteLength: number;
  readonly signal: AbortSignal;
}

/**
 * Reads models in worker threads, two at a time. If a thread runs out of memory, only its model fails. One idle thread is kept for the next
 * model.
 */
export class ModelReader implements AsyncDisposable {
  readonly #locations = new Semaphore(threadsMax);
  #idle: Worker | null = null;
  /** Number of models that a thread has read. */
  readonly #readCounts = new WeakMap<Worker, number>();

  /** Reads a model. If the signal aborts, terminates the thread and rejects with the reason of the signal. */
  async read(options: ReadTreeModelOptions, { byteLength, signal }: ReadingOptions): Promise<TreeModel> {
    using _place = await this.#locations.acquire(signal);
    const worker = this.#idle ?? this.#startThread();
    this.#idle = null;
    worker.ref();
    let reply: ReadingReply;
    try {
      reply = await replyOf(worker, options, signal);
    } catch (error) {
      await worker.terminate();
      throw error;
    }
    worker.unref();
    const readCount = (this.#readCounts.get(worker) ?? 0) + 1;
    this.#readCounts.set(worker, readCount);
    if (this.#idle === null && byteLength <= keptBytesMax && readCount < readingsMax) this.#idle = worker;
    else await worker.terminate();
    if (!reply.ok) throw new InferenceError(reply.code, reply.message);
    return reply.model;
  }

  #startThread(): Worker {
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const worker = new Worker(new URL(`./reading-thread.${extension}`, import.meta.url), {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: heapMebibytesMax },
    });
    // The pending `read` receives the error; without this listener it would be an uncaught exception.
    worker.on("error", () => {});
    worker.once("exit", () => {
      if (this.#idle === worker) this.#idle = null;
    });
    return worker;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#idle?.terminate();
    this.#idle = null;
  }
}

async function replyOf(worker: Worker, options: ReadTreeModelOptions, signal: AbortSignal): Promise<ReadingReply> {
  const replied = Promise.withResolvers<ReadingReply>();
  const onAbort = () => replied.reject(signal.reason);
  const onError = (error: Error) =>
    replied.reject(new InferenceError("INTERNAL", `reading '${options.modelPath}' failed: ${error.message}`));
  const onExit = () => onError(new Error("its thread has ended"));
  worker.once("message", replied.resolve);
  worker.once("error", onError);
  worker.once("exit", onExit);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    signal.throwIfAborted();
    worker.postMessage(options, []);
    return await replied.promise;
  } finally {
    worker.off("message", replied.resolve);
    worker.off("error", onError);
    worker.off("exit", onExit);
    signal.removeEventListener("abort", onAbort);
  }
}
