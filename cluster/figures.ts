import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

type Figures = Readonly<Record<string, number>>;
const fileIn = (folder: string) => join(folder, "figures.jsonl");

/** Adds a row to the table of figures of a run. The folder of the run is in the variable RUN. */
export function addFigures(event: string, figures: Figures): void {
  appendFileSync(fileIn(process.env["RUN"] ?? ""), `${JSON.stringify({ event, ...figures })}\n`);
}

/** Returns the rows that the tests of a run have added, as a table with aligned columns. */
export function figuresTable(folder: string): string {
  const file = fileIn(folder);
  if (!existsSync(file)) return "";
  const rows = readFileSync(file, "utf8").trimEnd().split("\n");
  const [first = {}, ...more] = rows.map((row) => JSON.parse(row) as Readonly<Record<string, string | number>>);
  const lines = [Object.keys(first), ...[first, ...more].map((row) => Object.values(row).map(String))];
  const widths = Object.keys(first).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const padded = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0);
  return lines.map((line) => `${line.map(padded).join("  ")}\n`).join("");
}
