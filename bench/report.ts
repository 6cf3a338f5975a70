import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Verdict } from "./row.ts";

export interface RowReport {
  readonly row: string;
  readonly verdicts: readonly Verdict[];
  /** Conditions and assumptions of the figures. */
  readonly notes: readonly string[];
  /** The reason for missing figures. */
  readonly failure: string | null;
}

const figure = (value: number | null) =>
  value === null ? "" : value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(2) : value.toFixed(4);

/** The printed table: both absolute figures, the ratio, the goal and whether it is reached, and the notes below. */
export function printedTable(reports: readonly RowReport[]): string {
  const lines = [["what", "ours", "oracle", "ratio", "to reach", ""]];
  for (const report of reports) {
    if (report.failure !== null)
      lines.push([report.row, "", "", "", "", `failed: ${report.failure.split("\n")[0]?.slice(0, 80)}`]);
    for (const { measure, oursMedian, oracleMedian, ratioMedian, reached } of report.verdicts) {
      const goal =
        measure.goal === null
          ? ""
          : `${measure.goal.kind} ${measure.goal.value}${measure.goal.of === "ratio" ? "x" : ` ${measure.unit}`}`;
      const absolute = (value: number | null) => (value === null ? "" : `${figure(value)} ${measure.unit}`);
      const ratio = ratioMedian === null ? "" : `${figure(ratioMedian)}x`;
      lines.push([
        measure.what,
        absolute(oursMedian),
        absolute(oracleMedian),
        ratio,
        goal,
        measure.goal === null ? "" : reached ? "yes" : "NO",
      ]);
    }
  }
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  const table = lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return [...table, ...reports.flatMap(({ row, notes }) => notes.map((note) => `${row}: ${note}`))].join("\n");
}

/** Writes one file for each run, with the context that is needed to interpret it later. */
export async function writeResults(
  reports: readonly RowReport[],
  options: { readonly rounds: number; readonly quick: boolean },
): Promise<string> {
  const run = promisify(execFile);
  const commit = await run("git", ["rev-parse", "--short", "HEAD"]).then(
    (result) => result.stdout.trim(),
    () => "unknown",
  );
  const date = new Date().toISOString();
  const directory = fileURLToPath(new URL("results/", import.meta.url));
  await mkdir(directory, { recursive: true });
  const path = join(directory, `${date.slice(0, 19).replaceAll(":", "")}${options.quick ? "-quick" : ""}.json`);
  const machine = { cpu: cpus()[0]?.model ?? "", cores: cpus().length, memoryBytes: totalmem(), node: process.version };
  await writeFile(path, `${JSON.stringify({ date, commit, machine, ...options, reports }, null, 1)}\n`);
  return path;
}
