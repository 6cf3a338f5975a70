import type { InputObject } from "./input-objects.ts";
import type { TransformProgress } from "./transform-state.ts";

/**
 * Computes the progress of a job whose objects finish out of order. All objects before the first unfinished one are
 * represented by one position.
 */
export class ObjectProgress {
  readonly #underWay = new Map<number, string>();
  readonly #completedAhead = new Map<number, string>();
  #after: TransformProgress["after"];

  constructor(after: TransformProgress["after"]) {
    this.#after = after;
  }

  started({ ordinal, place }: InputObject): void {
    this.#underWay.set(ordinal, place.key);
  }

  /** Records that an object has finished, and returns the new progress. Objects must begin in order. */
  ended({ ordinal, place }: InputObject): Pick<TransformProgress, "after" | "doneKeys"> {
    this.#underWay.delete(ordinal);
    this.#completedAhead.set(ordinal, place.key);
    const first = Math.min(...this.#underWay.keys());
    for (const [each, key] of [...this.#completedAhead].toSorted(([a], [b]) => a - b)) {
      if (each > first) break;
      this.#after = { ordinal: each, key };
      this.#completedAhead.delete(each);
    }
    return { after: this.#after, doneKeys: [...this.#completedAhead.values()] };
  }
}
