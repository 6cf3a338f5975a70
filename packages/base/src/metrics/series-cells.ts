/**
 * What the holders of one series have counted, from the numbers that each writes to cells of its own. Nobody but its holder writes to a
 * cell, so nothing is locked and no count is lost; a gauge has one more cell, which all its holders write to.
 */
export type SeriesKind = "counter" | "gauge" | "histogram";

/** Cells that one holder writes. `id` is never given to another holder of the series. */
export interface PartCells {
  readonly id: number;
  readonly cells: Float64Array;
}

/** What is known of holders that are gone. */
export interface KeptCells {
  /** Counter: the sum. Histogram: as its cells. */
  readonly sums: Float64Array;
  /** Of a gauge: the setting that the two below belong to. */
  setting: number;
  /** What was set, where it was set by a holder that is gone. */
  value: number;
  increments: number;
}

/** Of a counter: what it has counted. Of a histogram: the sum, and how many values each bucket got, +Inf last. Of a gauge: see `gaugeCells`. */
export function cellCount(kind: SeriesKind, boundCount: number): number {
  return { counter: 1, gauge: 3, histogram: boundCount + 2 }[kind];
}

/**
 * A gauge's cells: the value that its holder set last, what it has added since a setting, and which setting that was. The shared cell names
 * the setting that counts: the id of the holder that set times 2^32, and a number of that holder's. 0: nobody has set.
 */
export const gaugeCells = { value: 0, increments: 1, setting: 2 } as const;
const holderOfSetting = 2 ** 32;

export function emptyCells(kind: SeriesKind, boundCount: number): KeptCells {
  return { sums: new Float64Array(cellCount(kind, boundCount)), setting: 0, value: 0, increments: 0 };
}

/** Every cell added up: the value of a counter, what a histogram has counted. */
export function summed(kept: KeptCells, parts: Iterable<PartCells>): Float64Array {
  const sums = kept.sums.slice();
  for (const { cells } of parts) for (let index = 0; index < sums.length; index++) sums[index]! += cells[index]!;
  return sums;
}

/** The value set last, by whoever, and what all have added since. */
export function gaugeValue(shared: Float64Array, kept: KeptCells, parts: Iterable<PartCells>): number {
  const setting = shared[0]!;
  const setter = Math.floor(setting / holderOfSetting);
  let value = kept.setting === setting ? kept.value + kept.increments : 0;
  for (const { id, cells } of parts) {
    if (id === setter) value += cells[gaugeCells.value]!;
    if (cells[gaugeCells.setting] === setting) value += cells[gaugeCells.increments]!;
  }
  return value;
}

/** A holder goes: what it has counted stays while the series does. */
export function keep(kind: SeriesKind, shared: Float64Array, kept: KeptCells, part: PartCells): void {
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
