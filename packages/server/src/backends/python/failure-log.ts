import type { Clock, Logger } from "@galatea/base";
import { frameLimits } from "./frame-limits.ts";
import { LogRate } from "./log-rate.ts";

/** A failed execution: the model's exception as clients receive it, and the ids of its requests ("" for a request without one). */
export interface Failure {
  readonly message: string;
  readonly requestIds: readonly string[];
}

const messageCharsMax = 16_384;
const idsShownMax = 8;
const idCharsMax = 128;

/** Logs an ERROR line for each failed execution of a model version. All instances of the version share a rate limit. */
export class FailureLog {
  readonly #logger: Logger;
  readonly #model: { readonly model: string; readonly version: string };
  readonly #rate: LogRate;

  constructor(clock: Clock, logger: Logger, model: { readonly model: string; readonly version: string }) {
    this.#logger = logger;
    this.#model = model;
    const most = frameLimits.failureLinesPerSecondMax;
    this.#rate = new LogRate(clock, most, (lineCount) =>
      logger.error(`... ${lineCount} failed executions not shown: more than ${most} per second`, model),
    );
  }

  /** Logs a failure. If the rate limit is exceeded, only counts the failure and does not call `read`. */
  report(instance: string, read: () => Failure): void {
    if (!this.#rate.admits()) return;
    const { message, requestIds } = read();
    const request = shownIds(requestIds);
    this.#logger.error(message.slice(0, messageCharsMax), {
      ...this.#model,
      instance,
      ...(request === "" ? {} : { request }),
    });
  }

  /** Logs the number of failures that were counted but not logged. Called after the last execution. */
  end(): void {
    this.#rate.end();
  }
}

function shownIds(requestIds: readonly string[]): string {
  const known = requestIds.filter((id) => id !== "");
  const shown = known.slice(0, idsShownMax).map((id) => id.slice(0, idCharsMax));
  const excess = known.length - shown.length;
  return shown.join(",") + (excess > 0 ? ` and ${excess} more` : "");
}
