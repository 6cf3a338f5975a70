import type { Clock, Logger } from "@galatea/base";

/** A record that has entered a state. */
export interface StateEntry {
  /** Name of the record kind, such as `endpoint`. */
  readonly what: string;
  readonly name: string;
  /** Name of the new state; `deleted` if the record was deleted. */
  readonly at: string;
  /** Milliseconds that the record was in the previous state; null if that state was stable. */
  readonly tookMs: number | null;
  /** The FailureReason of the state, if it has one. */
  readonly reason: string | null;
}

/** Maximum number of lines per level and second. Further changes are only counted. */
const linesMax = 20;
const windowMs = 1000;

interface Window {
  lineCount: number;
  /** Number of changes without a log line, by kind and state. */
  readonly unwritten: Map<string, number>;
}

/**
 * Writes a log line for each change of a record's state; failures are warnings with the reason. Writes at most `linesMax` lines of each level per
 * second, and one more line with the number of other changes. Without this limit, a restart of 10,000 endpoints would flood the log.
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

  entered({ what, name, at, tookMs, reason }: StateEntry): void {
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

  /** Writes the counts of changes that were not logged individually. */
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
