import type { AttackReport } from "./attack.ts";

/** One line for each target. */
export function attackTable(reports: readonly AttackReport[]): string {
  const lines = [["target", "inputs", "taken", "seconds", "per second", "slowest", "its path", "kept", "result"]];
  for (const each of reports) {
    lines.push([
      each.target,
      String(each.inputs),
      `${((100 * each.used) / Math.max(1, each.inputs)).toFixed(0)} %`,
      each.seconds.toFixed(1),
      (each.inputs / each.seconds).toFixed(0),
      `${each.slowestMs.toFixed(0)} ms`,
      each.slowestPath,
      `${(each.keptBytes / 1024).toFixed(0)} KiB`,
      each.failure === null ? "ok" : "FAILED",
    ]);
  }
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
