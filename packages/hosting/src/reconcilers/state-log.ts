import type { Clock, Logger } from "@galatea/base";

/** A record that has entered a state. */
export interface EnteredState {
  /** The kind of the record, such as `endpoint`. */
  readonly what: string;
  readonly name: string;
  /** The state's name; `deleted` when the record is gone. */
  readonly at: string;
  /** Time that the record was in the previous state; null if that state is stable. */
  readonly tookMs: number | null;
  /** The FailureReason of the state, if it has one. */
  readonly reason: string | null;
}

/** Lines of one level that are written in one window; further changes are counted. */
const linesMax = 20;
const windowMs = 1000;

interface Window {
  lineCount: number;
  /** The changes without a line, by kind and state. */
  readonly unwritten: Map<string, number>;
}

/**
 * Writes a log line for each change of a record's state: a warning with the reason for a failure. Writes at most `linesMax` lines of each level a
 * second and counts the rest in one more line, so that a restart of 10,000 endpoints does not flood the log.
 */
export class StateLog implements Disposable {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #windows = { info: newWindow(), warning: newWindow() };
  #timer: Disposable | null = null;

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock;
    this.#logger = logger;
  }

  entered({ what, name, at, tookMs, reason }: EnteredState): void {
    const level = reason === null ? "info" : "warning";
    const window = this.#windows[level];
    this.#timer ??= this.#clock.timer(windowMs, () => this.#next());
    if (window.lineCount === linesMax) {
      const state = `${what} ${at}`;
      window.unwritten.set(state, (window.unwritten.get(state) ?? 0) + 1);
      return;
    }
    window.lineCount += 1;
    const took = tookMs === null ? "" : ` after ${(tookMs / 1000).toFixed(1)} s`;
    this.#logger[level](`${what} '${name}' is ${at}${took}${reason === null ? "" : `: ${reason}`}`);
  }

  /** Writes the counts that are still unwritten. */
  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
    this.#next();
  }

  #next(): void {
    this.#timer = null;
    for (const level of ["info", "warning"] as const) {
      const { unwritten } = this.#windows[level];
      this.#windows[level] = newWindow();
      if (unwritten.size === 0) continue;
      const counts = [...unwritten].map(([state, count]) => `${state}: ${count}`).join(", ");
      this.#logger[level](
        `more changes of state than the ${linesMax} that are logged one by one each second: ${counts}`,
      );
    }
  }
}

function newWindow(): Window {
  return { lineCount: 0, unwritten: new Map() };
}
