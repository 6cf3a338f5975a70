import { Worker } from "node:worker_threads";
import { QueryLimitExceeded } from "./aggregation.ts";
import type { QueryEvent } from "./query-record.ts";
import type { QueryResult } from "./query-run.ts";
import type { QueryThreadOutput, QueryThreadData, QueryThreadInput } from "./query-thread.ts";

/** Maximum heap of a query's thread, for its groups, its rows, and events in transit. */
const heapMebibytesMax = 256;
/** Maximum number of batches in transit to a thread. */
const batchesMax = 2;

/**
 * Runs a query in a thread of its own, so that a slow expression blocks nothing else. The thread ends with the query.
 * Reads events only as fast as the thread processes them. Rejects with QueryLimitExceeded at a limit. An abort of the
 * signal ends the thread at any point and rejects with the signal's reason.
 */
export async function runQuery(
  query: QueryThreadData,
  source: AsyncIterable<readonly QueryEvent[]>,
  signal: AbortSignal,
): Promise<QueryResult> {
  signal.throwIfAborted();
  const thread = new QueryThread(query);
  const abort = () => thread.fail(signal.reason as Error);
  signal.addEventListener("abort", abort, { once: true });
  try {
    for await (const events of source) await thread.send(events);
    return await thread.end();
  } finally {
    signal.removeEventListener("abort", abort);
    await thread[Symbol.asyncDispose]();
  }
}

class QueryThread implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #done = Promise.withResolvers<QueryResult>();
  #inFlightCount = 0;
  #acquired = Promise.withResolvers<void>();

  constructor(query: QueryThreadData) {
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    this.#worker = new Worker(new URL(`./query-thread.${extension}`, import.meta.url), {
      workerData: query,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: heapMebibytesMax },
    });
    // Prevents an unhandled rejection; the caller that awaits the promise handles the error.
    this.#done.promise.catch(() => {});
    this.#worker.on("message", (message: QueryThreadOutput) => this.#receive(message));
    this.#worker.on("error", (error) => this.fail(outOfMemory(error) ?? error));
    this.#worker.on("exit", () => this.fail(new Error("the query's thread has ended")));
  }

  fail(error: Error): void {
    this.#done.reject(error);
    this.#acquired.resolve();
  }

  /** Resolves when more events can be sent. */
  async send(events: readonly QueryEvent[]): Promise<void> {
    this.#post(events);
    this.#inFlightCount += 1;
    while (this.#inFlightCount >= batchesMax) {
      await Promise.race([this.#acquired.promise, this.#done.promise]);
      this.#acquired = Promise.withResolvers();
    }
  }

  async end(): Promise<QueryResult> {
    this.#post(null);
    return await this.#done.promise;
  }

  #post(message: QueryThreadInput): void {
    this.#worker.postMessage(message, []);
  }

  #receive(message: QueryThreadOutput): void {
    if (message.kind === "done") this.#done.resolve(message.result);
    else if (message.kind === "too-large") this.fail(new QueryLimitExceeded(message.message));
    else {
      this.#inFlightCount -= 1;
      this.#acquired.resolve();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}

function outOfMemory(error: Error & { readonly code?: string }): Error | null {
  if (error.code !== "ERR_WORKER_OUT_OF_MEMORY") return null;
  return new QueryLimitExceeded(`the query needs more than the ${heapMebibytesMax} MiB of memory that a query may use`);
}
