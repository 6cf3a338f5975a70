/**
 * Measures our server beside the real tritonserver in alternating rounds:
 *   node bench/run.ts [--only NAME,NAME] [--rounds 5] [--quick] [--zipf-models N] [--zipf-seconds N] [--cache DIR] [--list]
 * Prints a table and writes bench/results/<date>.json. Nothing is asserted: a goal that is not reached is printed as NO.
 * Exit code 1 when a row could not be measured.
 */
import { parseArgs } from "node:util";
import { cacheDirectory, ensureEnvironment } from "../conformance/environments/index.ts";
import { printedTable, writeResults, type RowReport } from "./report.ts";
import { judgeMeasure, type BenchContext } from "./row.ts";
import { rows } from "./rows/index.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    rounds: { type: "string", default: "5" },
    quick: { type: "boolean", default: false },
    cache: { type: "string", default: cacheDirectory(process.env) },
    "zipf-models": { type: "string", default: "5000" },
    "zipf-seconds": { type: "string", default: "300" },
    list: { type: "boolean", default: false },
  },
});

// Ends by a signal go through `exit`, where started servers are ended too.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

const wanted = values.only === "" ? null : new Set(values.only.split(","));
const unknown = [...(wanted ?? [])].filter((name) => !rows.some((row) => row.name === name));

if (values.list || unknown.length > 0) {
  if (unknown.length > 0) console.error(`unknown row: ${unknown.join(", ")}`);
  console.log(rows.map((row) => row.name).join("\n"));
  process.exitCode = unknown.length > 0 ? 1 : 0;
} else {
  await measureRows();
}

async function measureRows(): Promise<void> {
  const log = (line: string) => console.error(line);
  const context: BenchContext = {
    oracle: await ensureEnvironment(values.cache, "oracle", { progress: log }),
    rounds: values.quick ? 1 : Math.max(1, Number(values.rounds)),
    quick: values.quick,
    zipfModels: values.quick ? 300 : Number(values["zipf-models"]),
    zipfSeconds: values.quick ? 10 : Number(values["zipf-seconds"]),
    log,
  };
  const reports: RowReport[] = [];
  for (const row of rows) {
    if (wanted !== null && !wanted.has(row.name)) continue;
    log(`# ${row.name}`);
    try {
      const measures = await row.measure(context);
      reports.push({ row: row.name, verdicts: measures.map(judgeMeasure), failure: null });
    } catch (error) {
      log(String(error instanceof Error ? error.stack : error));
      reports.push({ row: row.name, verdicts: [], failure: String(error) });
      process.exitCode = 1;
    }
  }
  console.log(printedTable(reports));
  console.log(`written to ${await writeResults(reports, { rounds: context.rounds, quick: context.quick })}`);
}
