import type { Logger } from "../../base/index.ts";
import { endRemains, isWatched } from "../../processes/index.ts";

/** A worker's pid, in the environment of every program that its model starts. */
const marker = /(?:^|\0)GALATEA_WORKER=(\d+)(?:\0|$)/;

/**
 * Processes that models have started in sessions of their own, so that no signal to the worker's group reaches them: they end with
 * their worker all the same.
 */
export class WorkerRemains {
  readonly #logger: Logger;
  #looking: Promise<void> | null = null;
  #isDue = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** To be called when a worker has ended. */
  end(): void {
    this.#isDue = true;
    this.#looking ??= this.#look().finally(() => (this.#looking = null));
  }

  /** Resolves when nothing is left of the workers that have ended. */
  async ended(): Promise<void> {
    await this.#looking;
  }

  async #look(): Promise<void> {
    while (this.#isDue) {
      this.#isDue = false;
      try {
        await endRemains((environment) => {
          const pid = marker.exec(environment)?.[1];
          return pid !== undefined && !isWatched(Number(pid));
        });
      } catch (error) {
        this.#logger.error(`ending what a model left running: ${(error as Error).message}`);
      }
    }
  }
}
