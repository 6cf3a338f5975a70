import { Worker } from "node:worker_threads";
import type { AlgorithmAnswer, AlgorithmRequest } from "../../algorithms/index.ts";
import { type Clock, InferenceError, openDeadline } from "../../base/index.ts";
import type { AlgorithmOrder, AlgorithmReply } from "./algorithm-worker.ts";
import type { AlgorithmSource } from "./algorithm-models.ts";

/** What lies in typed arrays is not counted. */
const heapMebibytesMax = 1024;

type Unnumbered<Order> = Order extends unknown ? Omit<Order, "id"> : never;

interface Pending {
  readonly resolve: (reply: AlgorithmReply) => void;
  readonly reject: (error: Error) => void;
}

export interface AlgorithmThreadOptions {
  /** An order that takes longer ends the thread: an expression of a model may have no end. */
  readonly orderMsMax: number;
  readonly clock: Clock;
}

/**
 * A thread with models of algorithms. When it ends, by force or for lack of memory, what it was doing fails; the next order starts
 * another, in which a model is read again before it answers.
 */
export class AlgorithmThread implements AsyncDisposable {
  readonly #options: AlgorithmThreadOptions;
  #running: RunningThread | null = null;
  #nextModel = 1;

  constructor(options: AlgorithmThreadOptions) {
    this.#options = options;
  }

  /** Rejects with InferenceError where the files are no such model. */
  async load(source: AlgorithmSource, signal: AbortSignal): Promise<HeldAlgorithm> {
    const model = this.#nextModel++;
    const running = this.#thread();
    signal.throwIfAborted();
    const memoryBytes = await this.#loaded(running, { model, source });
    let readIn = running;
    return {
      memoryBytes,
      answer: async (request) => {
        const now = this.#thread();
        if (now !== readIn) {
          await this.#loaded(now, { model, source });
          readIn = now;
        }
        const reply = await this.#order(now, { kind: "answer", model, request }, [request.bytes.buffer as ArrayBuffer]);
        if (reply.outcome !== "answered") throw unexpected(reply);
        return reply.answer;
      },
      [Symbol.asyncDispose]: async () => {
        if (this.#running === readIn) await this.#order(readIn, { kind: "unload", model }, []);
      },
    };
  }

  async #loaded(running: RunningThread, what: { model: number; source: AlgorithmSource }) {
    const reply = await this.#order(running, { kind: "load", ...what }, []);
    if (reply.outcome !== "loaded") throw unexpected(reply);
    return reply.memoryBytes;
  }

  #thread(): RunningThread {
    if (this.#running !== null && !this.#running.hasEnded) return this.#running;
    this.#running = new RunningThread();
    return this.#running;
  }

  /** The time of an order begins when the orders before it are done. */
  #order(running: RunningThread, order: Unnumbered<AlgorithmOrder>, transfer: readonly ArrayBuffer[]) {
    return running.order(order, { transfer, ...this.#options });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running?.end("its container ends");
  }
}

/** A model in the thread. Disposing of it takes it out. */
export interface HeldAlgorithm extends AsyncDisposable {
  readonly memoryBytes: number;
  /** The request's bytes are given away. Rejects with InferenceError where the thread does not answer. */
  answer(request: AlgorithmRequest): Promise<AlgorithmAnswer>;
}

interface OrderOptions extends AlgorithmThreadOptions {
  readonly transfer: readonly ArrayBuffer[];
}

class RunningThread {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  /** The orders before are done. */
  #last: Promise<unknown> = Promise.resolve();
  #reason = "its thread has ended";
  hasEnded = false;

  constructor() {
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    this.#worker = new Worker(new URL(`./algorithm-worker.${extension}`, import.meta.url), {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: heapMebibytesMax },
    });
    this.#worker.unref();
    this.#worker.on("message", (reply: AlgorithmReply) => {
      const pending = this.#pending.get(reply.id);
      this.#pending.delete(reply.id);
      pending?.resolve(reply);
    });
    this.#worker.on("error", (error) => {
      this.#reason = error.message;
    });
    this.#worker.once("exit", () => {
      this.hasEnded = true;
      for (const { reject } of this.#pending.values()) reject(this.#failure());
      this.#pending.clear();
    });
  }

  order(order: Unnumbered<AlgorithmOrder>, options: OrderOptions): Promise<AlgorithmReply> {
    const outcome = this.#last.then(() => this.#carriedOut(order, options));
    this.#last = outcome.catch(() => {});
    return outcome;
  }

  async #carriedOut(order: Unnumbered<AlgorithmOrder>, { transfer, orderMsMax, clock }: OrderOptions) {
    if (this.hasEnded) throw this.#failure();
    const id = this.#nextId++;
    const replied = Promise.withResolvers<AlgorithmReply>();
    this.#pending.set(id, replied);
    this.#worker.ref();
    this.#worker.postMessage({ ...order, id }, transfer);
    using deadline = openDeadline({ clock, afterMs: orderMsMax, signal: null });
    const onAbort = () => void this.end(`the model took longer than ${orderMsMax} ms`);
    deadline.signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await replied.promise;
    } finally {
      deadline.signal.removeEventListener("abort", onAbort);
      this.#worker.unref();
    }
  }

  #failure(): InferenceError {
    return new InferenceError("INTERNAL", `the model did not answer: ${this.#reason}`);
  }

  async end(reason: string): Promise<void> {
    this.#reason = reason;
    this.hasEnded = true;
    await this.#worker.terminate();
  }
}

function unexpected(reply: AlgorithmReply): InferenceError {
  if (reply.outcome === "failed") return new InferenceError(reply.code, reply.message);
  return new InferenceError("INTERNAL", `the thread of the model answered '${reply.outcome}'`);
}
