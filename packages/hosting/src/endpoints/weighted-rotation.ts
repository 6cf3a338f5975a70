/** An item of a rotation. */
export interface WeightedItem {
  /** Weight of the item; an item with weight 0 is never chosen. */
  readonly weight: number;
}

interface Entry<Item> {
  readonly item: Item;
  readonly share: number;
  /** Number of requests that the item should have received by its share, minus the number that it has received. */
  credit: number;
}

/**
 * Distributes requests over items by weight, deterministically. After any number of requests, the requests of each item
 * differ from its share by less than one (R. Tijdeman, "The chairman assignment problem", 1980). Among the items with
 * enough credit, `next` chooses the one that would be the first to fall a whole request behind its share. The smooth
 * weighted round robin of web servers chooses the item with the most credit. For many unequal weights, it deviates by
 * more than one request. A choice takes time proportional to the number of items.
 */
export class WeightedRotation<Item extends WeightedItem> {
  readonly #entries: Entry<Item>[];
  /** Minimum credit that an item must have to be chosen. */
  readonly #minCredit: number;

  constructor(items: readonly Item[]) {
    const sharing = items.filter(({ weight }) => weight > 0);
    // Weights are divided by the largest one, because a sum of very large weights would be infinite.
    const largest = sharing.reduce((most, { weight }) => Math.max(most, weight), 0);
    const total = sharing.reduce((sum, { weight }) => sum + weight / largest, 0);
    this.#entries = sharing.map((item) => ({ item, share: item.weight / largest / total, credit: 0 }));
    this.#minCredit = sharing.length < 2 ? 0 : 1 / (2 * sharing.length - 2);
  }

  /** Returns the next item; null if all weights are zero. */
  next(): Item | null {
    const entries = this.#entries;
    const [only] = entries;
    if (only === undefined) return null;
    if (entries.length === 1) return only.item;
    let chosen: Entry<Item> | null = null;
    let chosenLeft = Infinity;
    for (const entry of entries) {
      entry.credit += entry.share;
      // The tolerance allows for rounding errors of doubles.
      if (entry.credit < this.#minCredit - 1e-9) continue;
      // Number of further requests after which the item would be a whole request behind its share.
      const left = (1 - this.#minCredit - entry.credit) / entry.share;
      if (left < chosenLeft) [chosen, chosenLeft] = [entry, left];
    }
    chosen ??= entries.reduce((most, entry) => (entry.credit > most.credit ? entry : most));
    chosen.credit -= 1;
    return chosen.item;
  }
}
