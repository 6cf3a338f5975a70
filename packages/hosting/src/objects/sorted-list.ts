/** A sorted list. Finding the start of a page is a binary search. */
export class SortedList<Item> {
  readonly #order: (a: Item, b: Item) => number;
  #items: Item[] = [];

  constructor(order: (a: Item, b: Item) => number) {
    this.#order = order;
  }

  get length(): number {
    return this.#items.length;
  }

  at(position: number): Item | undefined {
    return this.#items[position];
  }

  /** Replaces all items. */
  load(items: Iterable<Item>): void {
    this.#items = [...items].sort(this.#order);
  }

  insert(item: Item): void {
    this.#items.splice(this.#place(item), 0, item);
  }

  delete(item: Item): void {
    this.#items.splice(this.#place(item), 1);
  }

  /** Returns the index of the first item for which `holds` is false. `holds` must be true for all items before it. */
  firstNot(holds: (item: Item) => boolean): number {
    let low = 0;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (holds(this.#items[middle] as Item)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #place(item: Item): number {
    return this.firstNot((other) => this.#order(other, item) < 0);
  }
}
