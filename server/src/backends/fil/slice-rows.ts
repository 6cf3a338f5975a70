import type { Piece } from "./tree-lane.ts";

/** Rows of a request that answer one behind the other. */
export interface RequestRows extends Piece {
  /** Bytes of a row and of its answer. */
  readonly rowBytes: number;
  readonly answerBytes: number;
}

/** A slice takes about a millisecond: long beside what handing it over costs, short for whoever waits for its thread. */
export const sliceStepsMax = 2 ** 20;
/** Rows are walked in groups of eight. */
const groupRows = 8;

/** Cuts rows into what threads are given one at a time: slices of one request's rows or of several small ones'. */
export function sliceRows(requests: readonly RequestRows[], rowSteps: number): readonly (readonly Piece[])[] {
  const sliceRowsMax = Math.max(groupRows, Math.floor(sliceStepsMax / rowSteps / groupRows) * groupRows);
  const slices: Piece[][] = [];
  let room = 0;
  for (const { rowsAt, rowCount, answersAt, rowBytes, answerBytes } of requests) {
    let first = 0;
    while (first < rowCount) {
      if (room === 0) {
        slices.push([]);
        room = sliceRowsMax;
      }
      const count = Math.min(room, rowCount - first);
      const piece = { rowsAt: rowsAt + first * rowBytes, rowCount: count, answersAt: answersAt + first * answerBytes };
      slices.at(-1)?.push(piece);
      first += count;
      room -= count;
    }
  }
  return slices;
}
