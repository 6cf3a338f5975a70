/** Numbers below `count`, the k-th with a weight of 1/k^exponent. */
export function zipf(count: number, exponent: number, random: () => number): () => number {
  const cumulative = new Float64Array(count);
  let sum = 0;
  for (let index = 0; index < count; index++) {
    sum += 1 / (index + 1) ** exponent;
    cumulative[index] = sum;
  }
  return () => {
    const expected = random() * sum;
    let low = 0;
    let high = count - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((cumulative[middle] ?? 0) < expected) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

/**
 * Returns the hit rate of the least-recently-used set of `capacity` for these requests, an upper bound for practical
 * caches. With `times` of requests and responses, a request for a key whose miss is still in progress is not a hit.
 */
export function idealLruHitRate(
  sequence: readonly number[],
  capacity: number,
  times?: readonly { readonly startMs: number; readonly endMs: number }[],
): number {
  /** For each key, the time of the response to its miss. */
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
