import { type Clock, InferenceError } from "@galatea/base";
import { executionTimeout } from "../execution-timeout.ts";

export interface RunWatchOptions {
  readonly modelName: string;
  readonly signal: AbortSignal | null;
  readonly clock: Clock;
  /** Time in milliseconds after which a run is terminated; null for never. */
  readonly deadlineMs: number | null;
  /** Maximum time in milliseconds from the termination of a run to its next operator. */
  readonly terminateMs: number;
  /** Makes runs of the run thread end at their next operator (true), or lets them run to their end (false). */
  readonly terminate: (does: boolean) => Promise<unknown>;
  /** Waits for a response that arrives at once unless the process hangs. */
  readonly soon: (response: Promise<unknown>) => Promise<unknown>;
  /** Kills the process when the run does not end after its termination. */
  readonly kill: () => void;
}

/** Terminates a run whose request was cancelled or whose deadline has passed. */
export class RunWatch {
  readonly #options: RunWatchOptions;
  readonly #deadline: Disposable | null;
  #because: InferenceError | null = null;
  #terminating: Promise<unknown> | null = null;
  #force: Disposable | null = null;

  constructor(options: RunWatchOptions) {
    this.#options = options;
    const { signal, clock, deadlineMs } = options;
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#deadline = deadlineMs === null ? null : clock.timer(deadlineMs, this.#onDeadline);
  }

  /** The reason why the run was terminated; null when it was not. */
  get because(): InferenceError | null {
    return this.#because;
  }

  /**
   * Resolves when the run thread can be reused. Without this, a late termination could end the thread's next run, or the next run could not be
   * terminated.
   */
  async end(): Promise<void> {
    const { signal, soon, terminate } = this.#options;
    signal?.removeEventListener("abort", this.#onAbort);
    this.#deadline?.[Symbol.dispose]();
    this.#force?.[Symbol.dispose]();
    if (this.#terminating === null) return;
    try {
      await soon(this.#terminating);
      await soon(terminate(false));
    } catch {
      // The process has ended, and the run thread with it.
    }
  }

  readonly #onAbort = (): void => {
    this.#because ??= cancelledError();
    this.#terminate();
  };

  readonly #onDeadline = (): void => {
    const { modelName, deadlineMs, terminateMs, clock, kill } = this.#options;
    this.#because = executionTimeout(`the run of model '${modelName}'`, deadlineMs);
    this.#terminate();
    this.#force = clock.timer(terminateMs, kill);
  };

  #terminate(): void {
    if (this.#terminating !== null) return;
    this.#terminating = this.#options.terminate(true);
    this.#terminating.catch(() => {}); // `end` receives the rejection too, and handles it.
  }
}

export function cancelledError(): InferenceError {
  return new InferenceError("CANCELLED", "Request cancelled");
}
