import type { Piece } from "./tree-lane.ts";

/** Rows of a request that answer one behind the other. */
export interface RequestRows extends Piece {
  /** Bytes of a row, of its answer, and of its contributions. */
  readonly rowBytes: number;
  readonly answerBytes: number;
  readonly contributionBytes: number;
}

/** A slice takes about a millisecond: long beside what handing it over costs, short for whoever waits for its thread. */
export const sliceStepsMax = 2 ** 20;
/** Rows are walked in groups of eight; where one takes longer than a slice, one after the other. */
const groupRows = 8;

/** Cuts rows into what threads are given one at a time: slices of one request's rows or of several small ones'. */
export function sliceRows(requests: readonly RequestRows[], rowSteps: number): readonly (readonly Piece[])[] {
  const groupsMax = Math.floor(sliceStepsMax / rowSteps / groupRows);
  const sliceRowsMax = rowSteps > sliceStepsMax ? 1 : Math.max(1, groupsMax) * groupRows;
  const slices: Piece[][] = [];
  let room = 0;
  for (const { rowsAt, rowCount, answersAt, contributionsAt, rowBytes, answerBytes, contributionBytes } of requests) {
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
        answersAt: behind(answersAt, first * answerBytes),
        contributionsAt: behind(contributionsAt, first * contributionBytes),
      });
      first += count;
      room -= count;
    }
  }
  return slices;
}
