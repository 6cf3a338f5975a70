/**
 * Cells that the holders of one series write. Each holder writes only to its own cells, so no lock is needed and no count is lost. A
 * gauge has one more cell, which all holders write to.
 */
export type SeriesKind = "counter" | "gauge" | "histogram";

/** Cells that one holder writes. `id` is unique among all holders of the series, past ones included. */
export interface HolderCells {
  readonly id: number;
  readonly cells: Float64Array;
}

/** Totals of the holders that are gone. */
export interface KeptCells {
  /** Counter: the sum. Histogram: same layout as its cells. */
  readonly sums: Float64Array;
  /** Gauge: the setting that the next two fields belong to. */
  setting: number;
  /** Gauge: the value that a holder set before it was gone. */
  value: number;
  increments: number;
}

/**
 * Returns the number of cells of one holder. Counter: its count. Histogram: the sum, and a count per bucket, +Inf last. Gauge: see
 * `gaugeCells`.
 */
export function cellCount(kind: SeriesKind, boundCount: number): number {
  return { counter: 1, gauge: 3, histogram: boundCount + 2 }[kind];
}

/**
 * Cells of a gauge: the value that the holder set last, its increments since a setting, and the id of that setting. The shared cell has
 * the current setting: the id of the holder that set it times 2^32, plus a number of that holder's. 0: never set.
 */
export const gaugeCells = { value: 0, increments: 1, setting: 2 } as const;
const holderOfSetting = 2 ** 32;

export function emptyCells(kind: SeriesKind, boundCount: number): KeptCells {
  return { sums: new Float64Array(cellCount(kind, boundCount)), setting: 0, value: 0, increments: 0 };
}

/** Returns the sums of all cells: the value of a counter, the counts of a histogram. */
export function summed(kept: KeptCells, parts: Iterable<HolderCells>): Float64Array {
  const sums = kept.sums.slice();
  for (const { cells } of parts) for (let index = 0; index < sums.length; index++) sums[index]! += cells[index]!;
  return sums;
}

/** Returns the value that was set last by any holder, plus the increments of all holders since. */
export function gaugeValue(shared: Float64Array, kept: KeptCells, parts: Iterable<HolderCells>): number {
  const setting = shared[0]!;
  const setter = Math.floor(setting / holderOfSetting);
  let value = kept.setting === setting ? kept.value + kept.increments : 0;
  for (const { id, cells } of parts) {
    if (id === setter) value += cells[gaugeCells.value]!;
    if (cells[gaugeCells.setting] === setting) value += cells[gaugeCells.increments]!;
  }
  return value;
}

/** Adds the counts of a holder that goes to the totals, which stay as long as the series. */
export function keep(kind: SeriesKind, shared: Float64Array, kept: KeptCells, part: HolderCells): void {
  if (kind !== "gauge") {
    kept.sums.set(summed(kept, [part]));
    return;
  }
  const setting = shared[0]!;
  if (kept.setting !== setting) {
    kept.setting = setting;
    kept.value = 0;
    kept.increments = 0;
  }
  if (part.id === Math.floor(setting / holderOfSetting)) kept.value = part.cells[gaugeCells.value]!;
  if (part.cells[gaugeCells.setting] === setting) kept.increments += part.cells[gaugeCells.increments]!;
}
