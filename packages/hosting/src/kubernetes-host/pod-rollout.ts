import { Semaphore } from "@galatea/base";

/** Limits how many outdated pods are replaced at the same time: one of each fleet. */
export class PodRollout {
  readonly #fleets = new Map<string, { readonly slot: Semaphore; holderCount: number }>();

  /** Resolves when no other pod of the fleet is being replaced. The caller disposes the result when its new pod serves. */
  async acquire(fleet: string, signal: AbortSignal): Promise<Disposable> {
    const entry = this.#fleets.get(fleet) ?? { slot: new Semaphore(1), holderCount: 0 };
    this.#fleets.set(fleet, entry);
    entry.holderCount += 1;
    const release = () => {
      entry.holderCount -= 1;
      if (entry.holderCount === 0) this.#fleets.delete(fleet);
    };
    try {
      const slot = await entry.slot.acquire(signal);
      return {
        [Symbol.dispose]: () => {
          slot[Symbol.dispose]();
          release();
        },
      };
    } catch (error) {
      release();
      throw error;
    }
  }
}
