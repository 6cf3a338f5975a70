export interface OrderedSelection<Row, Entry> {
  /** Returns the list entry of a row; null for a row that does not match. */
  readonly entryOf: (row: Row) => Entry | null;
  /** Compares two entries; negative if `a` precedes `b`. */
  readonly order: (a: Entry, b: Entry) => number;
  readonly countMax: number;
}

/**
 * Returns the first `countMax` entries in order. Each batch of rows is processed in an event loop tick of its own. Only
 * a few pages of entries are in memory.
 */
export async function firstInOrder<Row, Entry>(
  batches: AsyncIterable<readonly Row[]>,
  { entryOf, order, countMax }: OrderedSelection<Row, Entry>,
  nextTick: () => Promise<void>,
): Promise<Entry[]> {
  const heldMax = Math.max(4 * countMax, 64);
  let held: Entry[] = [];
  let last: Entry | null = null;
  await nextTick();
  for await (const rows of batches) {
    for (const row of rows) {
      const entry = entryOf(row);
      if (entry !== null && (last === null || order(entry, last) < 0)) held.push(entry);
      if (held.length >= heldMax) {
        held = held.sort(order).slice(0, countMax);
        last = held.at(-1) ?? null;
      }
    }
    await nextTick();
  }
  return held.sort(order).slice(0, countMax);
}
