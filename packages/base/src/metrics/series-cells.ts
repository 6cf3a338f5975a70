/**
 * The kind of a metric that models create. Several processes may write one series. Each writer has its own cells in
 * shared memory, so that no lock is needed and no count is lost. A gauge has one more cell, which all its writers
 * share.
 */
export type CustomMetricKind = "counter" | "gauge" | "histogram";

/** The cells of one writer. `id` is unique among all current and former writers of the series. */
export interface WriterCells {
  readonly id: number;
  readonly cells: Float64Array;
}

/** Totals of the closed writers, so that their counts remain in the series. */
export interface ClosedWriterTotals {
  /** Counter: the sum. Histogram: the same layout as a writer's cells. */
  readonly sums: Float64Array;
  /** Gauge: the id of the setting to which `value` and `increments` belong. */
  setting: number;
  /** Gauge: the value that this setting assigned, if its writer is closed. */
  value: number;
  increments: number;
}

/**
 * Returns the number of cells of one writer. A counter has one cell. A histogram has the sum and a count per bucket,
 * with +Inf last. `gaugeCells` lists the cells of a gauge.
 */
export function cellCount(kind: CustomMetricKind, boundCount: number): number {
  return { counter: 1, gauge: 3, histogram: boundCount + 2 }[kind];
}

/**
 * Offsets of a writer's cells of a gauge: the value that the writer set last, the sum of its increments since a
 * setting, and the id of that setting. The shared cell contains the id of the current setting, or 0 if the gauge was
 * never set. The id of a setting is the writer's id times 2^32, plus a number that the writer chooses.
 */
export const gaugeCells = { value: 0, increments: 1, setting: 2 } as const;
const settingsPerWriter = 2 ** 32;

export function emptyTotals(kind: CustomMetricKind, boundCount: number): ClosedWriterTotals {
  return { sums: new Float64Array(cellCount(kind, boundCount)), setting: 0, value: 0, increments: 0 };
}

/** Returns the sums of all cells: the value of a counter, the counts of a histogram. */
export function sumCells(totals: ClosedWriterTotals, writers: Iterable<WriterCells>): Float64Array {
  const sums = totals.sums.slice();
  for (const { cells } of writers) for (let index = 0; index < sums.length; index++) sums[index]! += cells[index]!;
  return sums;
}

/** Returns the value that any writer has set last, plus the increments of all writers since then. */
export function gaugeValue(shared: Float64Array, totals: ClosedWriterTotals, writers: Iterable<WriterCells>): number {
  const setting = shared[0]!;
  const setter = Math.floor(setting / settingsPerWriter);
  let value = totals.setting === setting ? totals.value + totals.increments : 0;
  for (const { id, cells } of writers) {
    if (id === setter) value += cells[gaugeCells.value]!;
    if (cells[gaugeCells.setting] === setting) value += cells[gaugeCells.increments]!;
  }
  return value;
}

/** Adds the counts of a closing writer to the totals. */
export function addToClosedTotals(
  kind: CustomMetricKind,
  shared: Float64Array,
  totals: ClosedWriterTotals,
  writer: WriterCells,
): void {
  if (kind !== "gauge") {
    totals.sums.set(sumCells(totals, [writer]));
    return;
  }
  const setting = shared[0]!;
  if (totals.setting !== setting) {
    totals.setting = setting;
    totals.value = 0;
    totals.increments = 0;
  }
  if (writer.id === Math.floor(setting / settingsPerWriter)) totals.value = writer.cells[gaugeCells.value]!;
  if (writer.cells[gaugeCells.setting] === setting) totals.increments += writer.cells[gaugeCells.increments]!;
}
