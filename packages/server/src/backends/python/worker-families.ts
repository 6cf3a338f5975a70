import type { Logger } from "@galatea/base";
import { killOrphans } from "@galatea/base/processes";

/**
 * Families of processes: a worker and all processes that its model starts. Each inherits the family's number, whatever session or group
 * it moves to. They are killed when their worker has ended.
 */
export class WorkerFamilies {
  readonly #logger: Logger;
  readonly #isUserGone: (user: number) => boolean;
  readonly #living = new Set<number>();
  #last = 0;
  #looking: Promise<void> | null = null;
  #isDue = false;

  /** `isUserGone` returns whether a user's processes belong to a tenant that has ended, whatever family they claim. */
  constructor(logger: Logger, isUserGone: (user: number) => boolean) {
    this.#logger = logger;
    this.#isUserGone = isUserGone;
  }

  /** Returns the number for a worker that is about to be forked. */
  begin(): number {
    this.#last = (this.#last + 1) % 2 ** 32;
    this.#living.add(this.#last);
    return this.#last;
  }

  /** Ends the family of a worker that has ended, or could not be forked. */
  end(family: number): void {
    this.#living.delete(family);
    void this.look();
  }

  /** Kills the remaining processes of all ended families; resolves when there are none. */
  look(): Promise<void> {
    this.#isDue = true;
    return (this.#looking ??= this.#look().finally(() => (this.#looking = null)));
  }

  /** Resolves when no process of the ended families is left. */
  async ended(): Promise<void> {
    await this.#looking;
  }

  async #look(): Promise<void> {
    while (this.#isDue) {
      this.#isDue = false;
      try {
        await killOrphans(
          ({ workerFamily: family, user }) => this.#isUserGone(user) || (family !== null && !this.#living.has(family)),
        );
      } catch (error) {
        this.#logger.error(`ending the processes that a model left running: ${(error as Error).message}`);
      }
    }
  }
}
