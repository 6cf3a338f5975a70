/** Events of a simulation in the order of their simulated times. Events with equal times run in the order in which they were added. */
export class Timeline {
  /** A binary heap. */
  readonly #events: { readonly atMs: number; readonly order: number; readonly run: () => void }[] = [];
  #added = 0;
  nowMs = 0;

  at(atMs: number, run: () => void): void {
    const events = this.#events;
    const event = { atMs, order: this.#added++, run };
    let index = events.length;
    for (let parent = (index - 1) >> 1; index > 0; parent = (index - 1) >> 1) {
      const above = events[parent];
      if (above === undefined || !isEarlier(event, above)) break;
      events[index] = above;
      index = parent;
    }
    events[index] = event;
  }

  /** Runs all events, including those that they add. */
  run(): void {
    for (let event = this.#take(); event !== undefined; event = this.#take()) {
      this.nowMs = event.atMs;
      event.run();
    }
  }

  #take() {
    const events = this.#events;
    const [first] = events;
    const last = events.pop();
    if (last === undefined || last === first) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      let below = events[child];
      if (below === undefined) break;
      const right = events[child + 1];
      if (right !== undefined && isEarlier(right, below)) {
        child += 1;
        below = right;
      }
      if (!isEarlier(below, last)) break;
      events[index] = below;
      index = child;
    }
    events[index] = last;
    return first;
  }
}

type Ordered = { readonly atMs: number; readonly order: number };

const isEarlier = (one: Ordered, other: Ordered) =>
  one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
