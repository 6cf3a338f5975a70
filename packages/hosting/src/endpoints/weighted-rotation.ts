/** Who takes part in a rotation. */
export interface Weighted {
  /** Zero: nothing goes there. */
  readonly weight: number;
}

interface Entry<Item> {
  readonly item: Item;
  readonly share: number;
  /** What it was owed of the requests so far, less what it got. */
  credit: number;
}

/**
 * Shares out requests by weight in a fixed order. After any number of them each item has got its share of them to within less than one
 * request (the chairman assignment of R. Tijdeman, "The chairman assignment problem", 1980): always the one with a good part of a request
 * owed to it that would be a whole request behind first. The smooth round robin of web servers gives the item that is owed most, and is
 * off by more than one where there are many unequal weights. A choice takes time in proportion to the items.
 */
export class WeightedRotation<Item extends Weighted> {
  readonly #entries: Entry<Item>[];
  /** An item that is owed less has to wait. */
  readonly #owedMin: number;

  constructor(items: readonly Item[]) {
    const sharing = items.filter(({ weight }) => weight > 0);
    // Beside the largest one: sums of very large weights are no numbers.
    const largest = sharing.reduce((most, { weight }) => Math.max(most, weight), 0);
    const whole = sharing.reduce((sum, { weight }) => sum + weight / largest, 0);
    this.#entries = sharing.map((item) => ({ item, share: item.weight / largest / whole, credit: 0 }));
    this.#owedMin = sharing.length < 2 ? 0 : 1 / (2 * sharing.length - 2);
  }

  /** Null when every weight is zero. */
  next(): Item | null {
    const entries = this.#entries;
    const [only] = entries;
    if (only === undefined) return null;
    if (entries.length === 1) return only.item;
    let chosen: Entry<Item> | null = null;
    let chosenLeft = Infinity;
    for (const entry of entries) {
      entry.credit += entry.share;
      // Sums of doubles miss their bound by a trifle.
      if (entry.credit < this.#owedMin - 1e-9) continue;
      // How many requests from now it would be too far behind.
      const left = (1 - this.#owedMin - entry.credit) / entry.share;
      if (left < chosenLeft) [chosen, chosenLeft] = [entry, left];
    }
    chosen ??= entries.reduce((most, entry) => (entry.credit > most.credit ? entry : most));
    chosen.credit -= 1;
    return chosen.item;
  }
}
