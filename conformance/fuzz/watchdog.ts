import { Worker } from "node:worker_threads";

/** Checks from another thread that inputs complete, because a parser that hangs blocks its own thread. */
export class Watchdog implements AsyncDisposable {
  readonly #state = new Int32Array(new SharedArrayBuffer(8));
  readonly #worker: Worker;

  /** If one input takes longer than `inputMsMax`, `hint` and the input's number are printed and the process ends. */
  constructor(hint: string, inputMsMax: number) {
    const workerData = { state: this.#state, hint, inputMsMax };
    this.#worker = new Worker(new URL("watchdog-worker.ts", import.meta.url), { workerData });
  }

  /** Reports the start of input `index`. */
  begin(index: number): void {
    this.#state[0] = index;
    Atomics.add(this.#state, 1, 1);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}
