/** The processors of the threads that run an ONNX session with its own thread pool. */
export interface ThreadPlacement {
  /**
   * Index of the calling thread that the session prefers. That thread already runs on the right processor and has warm
   * caches.
   */
  readonly home: number;
  /** Processors of the pool's threads, one for each thread. */
  readonly pool: readonly number[];
  /** Processors of the calling thread: all processors that the pool does not use. */
  readonly caller: readonly number[];
}

/**
 * Divides the processors of `order` between the pool's threads and the calling thread. Each operator of a run waits for
 * the slowest thread. Without a fixed placement, the kernel sometimes puts two threads on one processor. The run then
 * takes twice as long while another processor is idle. The first processor rotates with `index`, so that the callers of
 * two sessions use different processors. Returns null if the pool has no threads or there are too few processors.
 */
export function divideProcessors(order: readonly number[], threadCount: number, index: number): ThreadPlacement | null {
  if (threadCount < 2 || threadCount > order.length) return null;
  const home = index % order.length;
  const at = (position: number) => order[(home + position) % order.length] as number;
  const pool = Array.from({ length: threadCount - 1 }, (_, position) => at(position + 1));
  return { home, pool, caller: order.filter((processor) => !pool.includes(processor)) };
}
