import { type Clock, InferenceError } from "@galatea/base";
import { overdue } from "../overdue.ts";

export interface RunWatchOptions {
  readonly modelName: string;
  readonly signal: AbortSignal | null;
  readonly clock: Clock;
  /** Time after which a run is ended; null for never. */
  readonly deadlineMs: number | null;
  /** Time that a terminated run may take to its next operator. */
  readonly terminateMs: number;
  /** Makes the lane's runs end at their next operator (true), or not (false). */
  readonly terminate: (does: boolean) => Promise<unknown>;
  /** Waits for a response that takes no time in a process that does not hang. */
  readonly soon: (answer: Promise<unknown>) => Promise<unknown>;
  /** Ends the process when the run does not end by itself. */
  readonly kill: () => void;
}

/** Ends a run whose caller has gone or whose deadline has passed. */
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
   * Resolves after the run, when its lane may be used again: the next run must not be ended by this watch, and must not begin before it
   * can itself be ended.
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
      // The process has ended, and the lane with it.
    }
  }

  readonly #onAbort = (): void => {
    this.#because ??= cancelled();
    this.#terminate();
  };

  readonly #onDeadline = (): void => {
    const { modelName, deadlineMs, terminateMs, clock, kill } = this.#options;
    this.#because = overdue(`the run of model '${modelName}'`, deadlineMs);
    this.#terminate();
    this.#force = clock.timer(terminateMs, kill);
  };

  #terminate(): void {
    if (this.#terminating !== null) return;
    this.#terminating = this.#options.terminate(true);
    this.#terminating.catch(() => {}); // `end` receives the rejection too, and handles it.
  }
}

export function cancelled(): InferenceError {
  return new InferenceError("CANCELLED", "Request cancelled");
}
