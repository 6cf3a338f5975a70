/** An item of a rotation. */
export interface Weighted {
  /** Zero: the item gets nothing. */
  readonly weight: number;
}

interface Entry<Item> {
  readonly item: Item;
  readonly share: number;
  /** Requests due to the item so far, less those it got. */
  credit: number;
}

/**
 * Distributes requests by weight in a fixed order. After any number of requests each item has got its share to within
 * less than one request (the chairman assignment of R. Tijdeman, "The chairman assignment problem", 1980): of the items
 * with enough credit it always chooses the one that would be a whole request behind first. The smooth round robin of
 * web servers chooses the item with the most credit, and is off by more than one for many unequal weights. A choice
 * takes time in proportion to the items.
 */
export class WeightedRotation<Item extends Weighted> {
  readonly #entries: Entry<Item>[];
  /** Minimum credit of an item that can be chosen. */
  readonly #owedMin: number;

  constructor(items: readonly Item[]) {
    const sharing = items.filter(({ weight }) => weight > 0);
    // Relative to the largest weight, because sums of very large weights are infinite.
    const largest = sharing.reduce((most, { weight }) => Math.max(most, weight), 0);
    const whole = sharing.reduce((sum, { weight }) => sum + weight / largest, 0);
    this.#entries = sharing.map((item) => ({ item, share: item.weight / largest / whole, credit: 0 }));
    this.#owedMin = sharing.length < 2 ? 0 : 1 / (2 * sharing.length - 2);
  }

  /** Returns the next item; null when every weight is zero. */
  next(): Item | null {
    const entries = this.#entries;
    const [only] = entries;
    if (only === undefined) return null;
    if (entries.length === 1) return only.item;
    let chosen: Entry<Item> | null = null;
    let chosenLeft = Infinity;
    for (const entry of entries) {
      entry.credit += entry.share;
      // Rounding errors of doubles are tolerated.
      if (entry.credit < this.#owedMin - 1e-9) continue;
      // Number of requests after which the item would be too far behind.
      const left = (1 - this.#owedMin - entry.credit) / entry.share;
      if (left < chosenLeft) [chosen, chosenLeft] = [entry, left];
    }
    chosen ??= entries.reduce((most, entry) => (entry.credit > most.credit ? entry : most));
    chosen.credit -= 1;
    return chosen.item;
  }
}
