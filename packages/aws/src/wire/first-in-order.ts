/** Compared in a fraction of a millisecond. */
export const rowsPerTurn = 1000;

export interface Selection<Row, Entry> {
  /** What is listed of a row, null for one that was not asked for. */
  readonly entryOf: (row: Row) => Entry | null;
  /** Negative where the first comes before the second. */
  readonly order: (a: Entry, b: Entry) => number;
  readonly countMax: number;
}

/**
 * Of all rows that were asked for those that come first, in order. Rows are looked at a thousand at a time, each thousand in a turn of
 * its own, and a few pages of entries are held. Rows may come and go meanwhile: one that is there from beginning to end is seen.
 */
export async function firstInOrder<Row, Entry>(
  rows: Iterable<Row>,
  { entryOf, order, countMax }: Selection<Row, Entry>,
  turn: () => Promise<void>,
): Promise<Entry[]> {
  const heldMax = Math.max(4 * countMax, 64);
  let held: Entry[] = [];
  let last: Entry | null = null;
  let lookedAt = 0;
  await turn();
  for (const row of rows) {
    const entry = entryOf(row);
    if (entry !== null && (last === null || order(entry, last) < 0)) held.push(entry);
    if (held.length >= heldMax) {
      held = held.sort(order).slice(0, countMax);
      last = held.at(-1) ?? null;
    }
    lookedAt += 1;
    if (lookedAt % rowsPerTurn === 0) await turn();
  }
  return held.sort(order).slice(0, countMax);
}
