import type { Logger } from "@galatea/base";
import { killOrphans } from "@galatea/base/processes";

/**
 * Groups each worker with all processes that its model starts (a family). Every descendant inherits the family's number, whatever session
 * or process group it moves to. When the worker has ended, the remaining processes of its family are killed.
 */
export class WorkerFamilies {
  readonly #logger: Logger;
  readonly #isUserFree: (user: number) => boolean;
  readonly #living = new Set<number>();
  #last = 0;
  #looking: Promise<void> | null = null;
  #isDue = false;

  /**
   * `isUserGone` returns whether a user belongs to a tenant that has ended. Processes of such a user are killed, whatever their family
   * number is.
   */
  constructor(logger: Logger, isUserGone: (user: number) => boolean) {
    this.#logger = logger;
    this.#isUserFree = isUserGone;
  }

  /** Returns the family number for a worker that is about to be forked. */
  begin(): number {
    this.#last = (this.#last + 1) % 2 ** 32;
    this.#living.add(this.#last);
    return this.#last;
  }

  /** Ends the family of a worker that has ended or could not be forked. */
  end(family: number): void {
    this.#living.delete(family);
    void this.look();
  }

  /** Searches for remaining processes of ended families and kills them. Resolves when there are none. */
  look(): Promise<void> {
    this.#isDue = true;
    return (this.#looking ??= this.#look().finally(() => (this.#looking = null)));
  }

  /** Resolves when no process of an ended family is left. */
  async ended(): Promise<void> {
    await this.#looking;
  }

  async #look(): Promise<void> {
    while (this.#isDue) {
      this.#isDue = false;
      try {
        await killOrphans(
          ({ workerFamily: family, user }) => this.#isUserFree(user) || (family !== null && !this.#living.has(family)),
        );
      } catch (error) {
        this.#logger.error(`ending the processes that a model left running: ${(error as Error).message}`);
      }
    }
  }
}
