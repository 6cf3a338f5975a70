import type { Clock } from "@galatea/base";

/** The execution that a worker currently runs: the oldest one that was sent to it. */
export interface RunningExecution {
  readonly executionId: number;
  /** Time, in nanoseconds of the monotonic clock, at which the execution became the oldest or last sent a response. */
  readonly sinceNs: number;
  /** Time limit of the execution in milliseconds; null for none. */
  readonly limitMs: number | null;
  /** True if the execution waits for the response of another model, whose own limit applies. */
  readonly isCalling: boolean;
}

export interface ExecutionWatchOptions {
  readonly clock: Clock;
  /**
   * Duration in milliseconds after which an execution is reported, once. An execution with a time limit is reported shortly before the
   * limit.
   */
  readonly reportMs: number;
  /** Returns the running execution; null when there is none. */
  readonly running: () => RunningExecution | null;
  readonly report: (runMs: number) => void;
  readonly end: (limitMs: number) => void;
}

/** Interval in milliseconds at which an execution over its limit is checked again while it waits for another model. */
const callingMs = 1000;
/**
 * Fraction of its time limit after which an execution is reported. The remaining time lets the worker print its stack before it is killed.
 */
const reportedShare = 0.9;

/** Reports a long execution, and kills the execution's worker at the time limit. Uses one timer, which most executions do not reset. */
export class ExecutionWatch implements Disposable {
  readonly #options: ExecutionWatchOptions;
  #timer: Disposable | null = null;
  #timerAtNs = Number.POSITIVE_INFINITY;
  #reportedId = 0;

  constructor(options: ExecutionWatchOptions) {
    this.#options = options;
  }

  /** Records that another execution is now the oldest. */
  began(sinceNs: number, limitMs: number | null): void {
    this.#scheduleCheck(sinceNs + this.#reportMs(limitMs) * 1e6);
  }

  #reportMs(limitMs: number | null): number {
    return Math.min(this.#options.reportMs, limitMs === null ? Number.POSITIVE_INFINITY : limitMs * reportedShare);
  }

  #scheduleCheck(atNs: number): void {
    if (atNs >= this.#timerAtNs) return;
    this.#timer?.[Symbol.dispose]();
    const { clock } = this.#options;
    this.#timerAtNs = atNs;
    this.#timer = clock.timer(Math.max(1, Math.ceil((atNs - clock.monotonicNs()) / 1e6)), () => {
      this.#timer = null;
      this.#timerAtNs = Number.POSITIVE_INFINITY;
      this.#check();
    });
  }

  #check(): void {
    const { clock, running, report, end } = this.#options;
    const execution = running();
    if (execution === null) return;
    const { executionId, sinceNs, limitMs, isCalling } = execution;
    const nowNs = clock.monotonicNs();
    const runMs = (nowNs - sinceNs) / 1e6;
    const reportMs = this.#reportMs(limitMs);
    if (runMs < reportMs) return this.#scheduleCheck(sinceNs + reportMs * 1e6);
    if (this.#reportedId !== executionId) {
      this.#reportedId = executionId;
      report(runMs);
      // Even if this check is late, the worker has as much time to print its stack as usual.
      const printNs = (1 - reportedShare) * (limitMs ?? 0) * 1e6;
      if (limitMs !== null) this.#scheduleCheck(Math.max(sinceNs + limitMs * 1e6, nowNs + printNs));
      return;
    }
    if (limitMs === null) return;
    if (runMs < limitMs) return this.#scheduleCheck(sinceNs + limitMs * 1e6);
    if (!isCalling) return end(limitMs);
    this.#scheduleCheck(nowNs + callingMs * 1e6);
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = null;
    this.#timerAtNs = Number.NEGATIVE_INFINITY;
  }
}
