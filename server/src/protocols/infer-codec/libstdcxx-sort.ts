/**
 * The order that `std::sort` of libstdc++ leaves things in, which is what Triton classifies with. It is not stable, and it
 * leaves NaN (which is before nothing, and nothing before it) somewhere in the middle: where equal scores and NaN end up in a
 * list of classes is a matter of the algorithm's every step, so the steps are the same here. It differs in one thing: walks
 * that C++ leaves unguarded stop at the ends.
 *
 * Where nothing is NaN, and only the first `wantedCount` are looked at afterwards, the stretches behind them are left as they are: of
 * four million scores the best takes a fifth of the time then.
 */
export function sortAsLibstdcxx(
  items: number[],
  isBefore: (a: number, b: number) => boolean,
  wantedCount = items.length,
): void {
  new IntroSort(items, isBefore, wantedCount).sort();
}

/** Longer stretches are partitioned, shorter ones left to the insertion sort at the end. */
const partitionedAbove = 16;

class IntroSort {
  readonly #items: number[];
  readonly #isBefore: (a: number, b: number) => boolean;
  readonly #wantedCount: number;
  /** Behind it nothing is sorted, and nothing belongs before it. */
  #end: number;

  constructor(items: number[], isBefore: (a: number, b: number) => boolean, wantedCount: number) {
    this.#items = items;
    this.#isBefore = isBefore;
    this.#wantedCount = wantedCount;
    this.#end = items.length;
  }

  sort(): void {
    const { length } = this.#items;
    if (length < 2) return;
    this.#partition(0, length, 2 * (31 - Math.clz32(length)));
    const short = Math.min(this.#end, partitionedAbove);
    for (let i = 1; i < short; i++) this.#insertGuarded(i);
    for (let i = short; i < this.#end; i++) this.#insert(i);
  }

  #partition(begin: number, end: number, depthLeft: number): void {
    while (end - begin > partitionedAbove) {
      if (depthLeft-- === 0) return this.#heapSort(begin, end);
      this.#medianTo(begin, begin + 1, begin + Math.floor((end - begin) / 2), end - 1);
      const cut = this.#split(begin + 1, end, begin);
      if (cut < this.#wantedCount) this.#partition(cut, end, depthLeft);
      else this.#end = Math.min(this.#end, cut);
      end = cut;
    }
  }

  #medianTo(place: number, a: number, b: number, c: number): void {
    let median: number;
    if (this.#before(a, b)) median = this.#before(b, c) ? b : this.#before(a, c) ? c : a;
    else median = this.#before(a, c) ? a : this.#before(b, c) ? c : b;
    this.#swap(place, median);
  }

  #split(begin: number, end: number, pivot: number): number {
    let left = begin;
    let right = end;
    for (;;) {
      while (left < end && this.#before(left, pivot)) left++;
      right--;
      while (right > pivot && this.#before(pivot, right)) right--;
      if (left >= right) return left;
      this.#swap(left, right);
      left++;
    }
  }

  #insertGuarded(at: number): void {
    if (!this.#before(at, 0)) return this.#insert(at);
    const item = this.#items[at]!;
    this.#items.copyWithin(1, 0, at);
    this.#items[0] = item;
  }

  #insert(at: number): void {
    const item = this.#items[at]!;
    let hole = at;
    for (; hole > 0 && this.#isBefore(item, this.#items[hole - 1]!); hole--) this.#items[hole] = this.#items[hole - 1]!;
    this.#items[hole] = item;
  }

  #heapSort(begin: number, end: number): void {
    const length = end - begin;
    for (let parent = Math.floor((length - 2) / 2); parent >= 0; parent--) {
      this.#sift({ begin, hole: parent, length, item: this.#items[begin + parent]! });
    }
    for (let last = length - 1; last > 0; last--) {
      const item = this.#items[begin + last]!;
      this.#items[begin + last] = this.#items[begin]!;
      this.#sift({ begin, hole: 0, length: last, item });
    }
  }

  /** The hole sinks to a leaf, always to the child that comes last, and the item rises from there to its place. */
  #sift({ begin, hole, length, item }: { begin: number; hole: number; length: number; item: number }): void {
    const items = this.#items;
    const top = hole;
    while (hole < Math.floor((length - 1) / 2)) {
      let child = 2 * hole + 2;
      if (this.#before(begin + child, begin + child - 1)) child--;
      items[begin + hole] = items[begin + child]!;
      hole = child;
    }
    if (length % 2 === 0 && hole === (length - 2) / 2) {
      items[begin + hole] = items[begin + 2 * hole + 1]!;
      hole = 2 * hole + 1;
    }
    for (let parent = (hole - 1) >> 1; hole > top && this.#isBefore(items[begin + parent]!, item);) {
      items[begin + hole] = items[begin + parent]!;
      hole = parent;
      parent = (hole - 1) >> 1;
    }
    items[begin + hole] = item;
  }

  #before(a: number, b: number): boolean {
    return this.#isBefore(this.#items[a]!, this.#items[b]!);
  }

  #swap(a: number, b: number): void {
    const item = this.#items[a]!;
    this.#items[a] = this.#items[b]!;
    this.#items[b] = item;
  }
}
