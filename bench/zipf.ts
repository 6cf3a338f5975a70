/** Numbers below `count`, the k-th with a weight of 1/k^exponent. */
export function zipf(count: number, exponent: number, random: () => number): () => number {
  const cumulative = new Float64Array(count);
  let sum = 0;
  for (let index = 0; index < count; index++) {
    sum += 1 / (index + 1) ** exponent;
    cumulative[index] = sum;
  }
  return () => {
    const wanted = random() * sum;
    let low = 0;
    let high = count - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((cumulative[middle] ?? 0) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

/**
 * How often the least-recently-used set of `capacity` holds the next of these: the hit rate nothing practical beats by much.
 * With `times`, when each was asked and answered, what is asked again before its miss was answered is no hit: no cache has
 * what is still on its way.
 */
export function idealLruHitRate(
  sequence: readonly number[],
  capacity: number,
  times?: readonly { readonly startMs: number; readonly endMs: number }[],
): number {
  /** Key to when its miss was answered. */
  const held = new Map<number, number>();
  let hits = 0;
  for (const [index, key] of sequence.entries()) {
    const { startMs, endMs } = times?.[index] ?? { startMs: 0, endMs: 0 };
    const readyMs = held.get(key);
    if (readyMs !== undefined && readyMs <= startMs) hits++;
    if (readyMs === undefined && held.size >= capacity) held.delete(held.keys().next().value as number);
    held.delete(key);
    held.set(key, readyMs ?? endMs);
  }
  return hits / sequence.length;
}
