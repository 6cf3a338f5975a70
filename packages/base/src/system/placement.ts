/** Where the threads of a session with a pool of its own keep to. */
export interface Placement {
  /** Which run thread is tried first: always the same, whose caches and processor are then the right ones. */
  readonly home: number;
  /** Processors of the pool's threads, one each. */
  readonly pool: readonly number[];
  /** Processors of the thread that calls: all others. */
  readonly caller: readonly number[];
}

/**
 * A run is divided among the pool's threads and the one that calls, and each operator waits for the slowest: on a machine whose
 * kernel puts two of them on one processor (a virtual machine whose idle processors are slow to wake, or are kept free), the run
 * takes twice as long while another processor idles. So each has its own. The processors of `order` are shared out from a place
 * that turns with `index`, so that two sessions' callers do not meet. null where there is nothing to divide or not enough room.
 */
export function placeThreads(order: readonly number[], threadCount: number, index: number): Placement | null {
  if (threadCount < 2 || threadCount > order.length) return null;
  const home = index % order.length;
  const at = (place: number) => order[(home + place) % order.length] as number;
  const pool = Array.from({ length: threadCount - 1 }, (_, place) => at(place + 1));
  return { home, pool, caller: order.filter((processor) => !pool.includes(processor)) };
}
