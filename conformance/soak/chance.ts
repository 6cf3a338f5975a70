/** A random number generator (xorshift32): equal seeds give equal numbers. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = (Math.imul(seed + 1, 0x9e3779b1) | 0) === 0 ? 1 : Math.imul(seed + 1, 0x9e3779b1) | 0;
    for (let tick = 0; tick < 8; tick++) this.next();
  }

  /** Returns a number in [0, 1). */
  next(): number {
    let state = this.#state;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    this.#state = state;
    return (state >>> 0) / 2 ** 32;
  }

  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  of<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item;
  }
}
