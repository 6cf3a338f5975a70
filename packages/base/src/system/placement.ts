/** The processors for the threads of a session with its own thread pool. */
export interface Placement {
  /** Index of the run thread that is tried first. It is always the same thread, whose caches are warm and whose processor fits. */
  readonly home: number;
  /** Processors of the pool's threads, one each. */
  readonly pool: readonly number[];
  /** Processors of the calling thread: all others. */
  readonly caller: readonly number[];
}

/**
 * Divides the processors of `order` among the pool's threads and the calling thread. Each operator of a run waits for the slowest thread.
 * When the kernel puts two threads on one processor (a virtual machine whose idle processors are slow to wake), the run takes twice as
 * long while another processor idles. The first processor rotates with `index`, so that callers of two sessions use different ones.
 * Returns null when there is nothing to divide or there are too few processors.
 */
export function placeThreads(order: readonly number[], threadCount: number, index: number): Placement | null {
  if (threadCount < 2 || threadCount > order.length) return null;
  const home = index % order.length;
  const at = (place: number) => order[(home + place) % order.length] as number;
  const pool = Array.from({ length: threadCount - 1 }, (_, place) => at(place + 1));
  return { home, pool, caller: order.filter((processor) => !pool.includes(processor)) };
}
