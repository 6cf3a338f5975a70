import { parseNumber } from "./number-text.ts";
import { featureCellsMax, type FeatureRows } from "./algorithm-request.ts";

export interface CsvOptions {
  readonly delimiter: string;
  /** Value of an empty cell; null when empty cells are invalid. */
  readonly emptyCell: number | null;
}

/** Reads rows of numbers, one row a line. Throws RangeError when rows differ in length or a cell is not a number. */
export function csvRows(text: string, { delimiter, emptyCell }: CsvOptions): FeatureRows {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const rowCount = lines.length;
  if (rowCount === 0) throw new RangeError("there are no rows");
  const columnCount = cellsOf(lines[0] as string, delimiter).length;
  if (rowCount * columnCount > featureCellsMax) throw new RangeError(`there are more than ${featureCellsMax} cells`);
  const values = new Float32Array(rowCount * columnCount);
  for (const [row, line] of lines.entries()) {
    const cells = cellsOf(line, delimiter);
    if (cells.length !== columnCount) {
      throw new RangeError(`row ${row} has ${cells.length} columns, the first one has ${columnCount}`);
    }
    for (const [column, cell] of cells.entries()) {
      const value = cell.trim() === "" ? emptyCell : parseNumber(cell);
      if (value === null) throw new RangeError(`could not convert string to float: '${cell.slice(0, 50)}'`);
      values[row * columnCount + column] = value;
    }
  }
  return { rowCount, columnCount, values };
}

function cellsOf(line: string, delimiter: string): string[] {
  return (line.endsWith("\r") ? line.slice(0, -1) : line).split(delimiter);
}
