import type { RowSegment } from "./tree-worker.ts";

/** Consecutive rows of a request. */
export interface RequestRows extends RowSegment {
  /** Bytes of a row, of its response, and of its contributions. */
  readonly rowBytes: number;
  readonly predictionBytes: number;
  readonly contributionBytes: number;
}

/** A slice takes about a millisecond: long compared to the cost of passing it to a thread, short for others that wait for the thread. */
export const sliceStepsMax = 2 ** 20;
/** Rows are evaluated in groups of eight; one by one if a row takes longer than a slice. */
const groupRows = 8;

/** Splits rows into the units of work for threads: slices of one request's rows or of several small ones'. */
export function sliceRows(requests: readonly RequestRows[], rowSteps: number): readonly (readonly RowSegment[])[] {
  const groupsMax = Math.floor(sliceStepsMax / rowSteps / groupRows);
  const sliceRowsMax = rowSteps > sliceStepsMax ? 1 : Math.max(1, groupsMax) * groupRows;
  const slices: RowSegment[][] = [];
  let room = 0;
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
      if (room === 0) {
        slices.push([]);
        room = sliceRowsMax;
      }
      const count = Math.min(room, rowCount - first);
      slices.at(-1)?.push({
        rowsAt: rowsAt + first * rowBytes,
        rowCount: count,
        predictionsAt: behind(predictionsAt, first * predictionBytes),
        contributionsAt: behind(contributionsAt, first * contributionBytes),
      });
      first += count;
      room -= count;
    }
  }
  return slices;
}
