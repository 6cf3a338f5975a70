import { type Clock, InferenceError } from "@galatea/base";
import { overdue } from "../overdue.ts";

export interface RunWatchOptions {
  readonly modelName: string;
  readonly signal: AbortSignal | null;
  readonly clock: Clock;
  /** After so long a run is ended; null for never. */
  readonly deadlineMs: number | null;
  /** How long a run that was told to end may take to its next operator. */
  readonly terminateMs: number;
  /** Has the lane's runs end at their next operator, or (false) not. */
  readonly terminate: (does: boolean) => Promise<unknown>;
  /** Waits for an answer that takes no time in a process that does not hang. */
  readonly soon: (answer: Promise<unknown>) => Promise<unknown>;
  /** Ends the process: the run does not end by itself. */
  readonly kill: () => void;
}

/** Ends a run whose caller has gone or whose time is over. */
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

  /** Why the run was told to end; null where it was not. */
  get because(): InferenceError | null {
    return this.#because;
  }

  /** The run is over: resolves when its lane can be another's, whose run shall neither be ended by this nor begin before it may be ended itself. */
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
    this.#terminating.catch(() => {}); // `end` sees it too, and knows what it means.
  }
}

export function cancelled(): InferenceError {
  return new InferenceError("CANCELLED", "Request cancelled");
}
