import type { Logger } from "../../base/index.ts";
import { endRemains } from "../../processes/index.ts";

/**
 * A worker and all that its model starts are a family, known by a number that each of them inherits, whatever session or group it
 * moves to. They end with their worker.
 */
export class WorkerFamilies {
  readonly #logger: Logger;
  readonly #living = new Set<number>();
  #last = 0;
  #looking: Promise<void> | null = null;
  #isDue = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** The number for a worker that is about to be forked. */
  begin(): number {
    this.#last = (this.#last + 1) % 2 ** 32;
    this.#living.add(this.#last);
    return this.#last;
  }

  /** The worker has ended, or could not be forked. */
  end(family: number): void {
    this.#living.delete(family);
    this.#isDue = true;
    this.#looking ??= this.#look().finally(() => (this.#looking = null));
  }

  /** Resolves when nothing is left of the families that have ended. */
  async ended(): Promise<void> {
    await this.#looking;
  }

  async #look(): Promise<void> {
    while (this.#isDue) {
      this.#isDue = false;
      try {
        await endRemains((family) => !this.#living.has(family));
      } catch (error) {
        this.#logger.error(`ending what a model left running: ${(error as Error).message}`);
      }
    }
  }
}
