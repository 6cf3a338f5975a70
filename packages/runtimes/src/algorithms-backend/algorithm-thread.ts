import { Worker } from "node:worker_threads";
import { type Clock, InferenceError, openDeadline } from "@galatea/base";
import type { AlgorithmCommand, AlgorithmReply, UnloadCommand } from "./algorithm-worker.ts";

/** Limit of the JavaScript heap of a thread; memory of typed arrays is not included. */
const heapMebibytesMax = 1024;

export interface CommandOptions {
  /** Time limit, in milliseconds, after which the thread is terminated: a regular expression of a model may never end. */
  readonly commandMsMax: number;
  readonly clock: Clock;
  /** Buffers that are transferred with the command. */
  readonly transfer: readonly ArrayBuffer[];
}

/** A thread that reads and evaluates models of algorithms. If it is terminated or runs out of memory, its running command fails. */
export class AlgorithmThread implements AsyncDisposable {
  readonly #worker: Worker;
  #pending: PromiseWithResolvers<AlgorithmReply> | null = null;
  #reason = "its thread has ended";
  #hasEnded = false;

  constructor() {
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    this.#worker = new Worker(new URL(`./algorithm-worker.${extension}`, import.meta.url), {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: heapMebibytesMax },
    });
    this.#worker.unref();
    this.#worker.on("message", (reply: AlgorithmReply) => this.#pending?.resolve(reply));
    this.#worker.on("error", (error) => {
      this.#reason = error.message;
    });
    this.#worker.once("exit", () => {
      this.#hasEnded = true;
      this.#pending?.reject(this.#failure());
    });
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Runs a command; only one may run at a time. Rejects with InferenceError if the thread ends, or exceeds `commandMsMax`. */
  async command(command: AlgorithmCommand, { transfer, commandMsMax, clock }: CommandOptions) {
    if (this.#hasEnded) throw this.#failure();
    const replied = Promise.withResolvers<AlgorithmReply>();
    this.#pending = replied;
    this.#worker.ref();
    this.#worker.postMessage(command, transfer);
    using deadline = openDeadline({ clock, afterMs: commandMsMax, signal: null });
    const onAbort = () => void this.#end(`the model took longer than ${commandMsMax} ms`);
    deadline.signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await replied.promise;
    } finally {
      deadline.signal.removeEventListener("abort", onAbort);
      this.#pending = null;
      this.#worker.unref();
    }
  }

  /** Unloads the model after the running command; returns immediately. */
  forget(model: number): void {
    if (!this.#hasEnded) this.#worker.postMessage({ kind: "unload", model } satisfies UnloadCommand, []);
  }

  #failure(): InferenceError {
    return new InferenceError("INTERNAL", `the model did not respond: ${this.#reason}`);
  }

  async #end(reason: string): Promise<void> {
    this.#reason = reason;
    this.#hasEnded = true;
    await this.#worker.terminate();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end("its container is stopping");
  }
}
