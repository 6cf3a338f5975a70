import type { RowSegment } from "./tree-worker.ts";

/** Consecutive rows of a request. */
export interface RequestRows extends RowSegment {
  /** Size of a row, of its predictions, and of its contributions, in bytes. */
  readonly rowBytes: number;
  readonly predictionBytes: number;
  readonly contributionBytes: number;
}

/**
 * Maximum cost of a slice, about a millisecond: long compared to the cost of passing it to a thread, but short for the batches that wait
 * for the thread.
 */
export const sliceStepsMax = 2 ** 20;
/** Number of rows that are evaluated together; a slice has a multiple of it, unless one row costs more than a slice. */
const groupRows = 8;

/** Splits the rows of a batch into slices, the units of work of threads. A slice has rows of one request or of several small ones. */
export function sliceRows(requests: readonly RequestRows[], rowSteps: number): readonly (readonly RowSegment[])[] {
  const groupsMax = Math.floor(sliceStepsMax / rowSteps / groupRows);
  const sliceRowsMax = rowSteps > sliceStepsMax ? 1 : Math.max(1, groupsMax) * groupRows;
  const slices: RowSegment[][] = [];
  let capacity = 0;
  for (const {
    rowsAt,
    rowCount,
    predictionsAt,
    contributionsAt,
    rowBytes,
    predictionBytes,
    contributionBytes,
  } of requests) {
    const behind = (at: number | null, byteLength: number) => (at === null ? null : at + byteLength);
    let first = 0;
    while (first < rowCount) {
      if (capacity === 0) {
        slices.push([]);
        capacity = sliceRowsMax;
      }
      const count = Math.min(capacity, rowCount - first);
      slices.at(-1)?.push({
        rowsAt: rowsAt + first * rowBytes,
        rowCount: count,
        predictionsAt: behind(predictionsAt, first * predictionBytes),
        contributionsAt: behind(contributionsAt, first * contributionBytes),
      });
      first += count;
      capacity -= count;
    }
  }
  return slices;
}
