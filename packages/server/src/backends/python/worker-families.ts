import type { Logger } from "@galatea/base";
import { endRemains } from "@galatea/base/processes";

/**
 * A worker and all that its model starts are a family, known by a number that each of them inherits, whatever session or group it
 * moves to. They end with their worker.
 */
export class WorkerFamilies {
  readonly #logger: Logger;
  readonly #isUserGone: (user: number) => boolean;
  readonly #living = new Set<number>();
  #last = 0;
  #looking: Promise<void> | null = null;
  #isDue = false;

  /** `isUserGone` tells of a user whether its processes are a tenant's that has ended, whatever family they claim. */
  constructor(logger: Logger, isUserGone: (user: number) => boolean) {
    this.#logger = logger;
    this.#isUserGone = isUserGone;
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
    void this.look();
  }

  /** Ends what is left of all that have ended by now; resolves when nothing is. */
  look(): Promise<void> {
    this.#isDue = true;
    return (this.#looking ??= this.#look().finally(() => (this.#looking = null)));
  }

  /** Resolves when nothing is left of the families that have ended. */
  async ended(): Promise<void> {
    await this.#looking;
  }

  async #look(): Promise<void> {
    while (this.#isDue) {
      this.#isDue = false;
      try {
        await endRemains(
          ({ family, user }) => this.#isUserGone(user) || (family !== null && !this.#living.has(family)),
        );
      } catch (error) {
        this.#logger.error(`ending what a model left running: ${(error as Error).message}`);
      }
    }
  }
}
