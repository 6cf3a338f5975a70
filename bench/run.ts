/**
 * Measures our server beside the real tritonserver in alternating rounds: node bench/run.ts --help
 * Prints a table and writes bench/results/<date>.json. Nothing is asserted: a goal that is not reached is printed as NO.
 * Exit code 1 when a row could not be measured.
 */
import { cacheDirectory, ensureEnvironment } from "../conformance/environments/index.ts";
import { UsageError } from "../packages/galatea/src/options/flag.ts";
import { benchHelp, benchOptions, type BenchOptions } from "./options.ts";
import { printedTable, writeResults, type RowReport } from "./report.ts";
import { judgeMeasure, type BenchContext } from "./row.ts";
import { rows } from "./rows/index.ts";

// Ends by a signal go through `exit`, where started servers are ended too.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

// Each started server has a listener for the exit, and a row may start dozens.
process.setMaxListeners(200);

const cache = cacheDirectory(process.env);
const rowNames = rows.map((row) => row.name);
try {
  const options = benchOptions(process.argv.slice(2), cache, rowNames);
  if (options === null) process.stdout.write(benchHelp(cache));
  else if (options.list) console.log(rowNames.join("\n"));
  else await measureRows(options);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`bench: ${error.message}`);
  process.exitCode = 1;
}

async function measureRows({ only, cache: directory, ...options }: BenchOptions): Promise<void> {
  const log = (line: string) => console.error(line);
  const oracle = await ensureEnvironment(directory, "oracle", { progress: log });
  const reports: RowReport[] = [];
  for (const row of rows) {
    if (only !== null && !only.has(row.name)) continue;
    log(`# ${row.name}`);
    const notes: string[] = [];
    const note = (line: string) => {
      notes.push(line);
      log(line);
    };
    const context: BenchContext = { ...options, oracle, log, note };
    try {
      const measures = await row.measure(context);
      reports.push({ row: row.name, verdicts: measures.map(judgeMeasure), notes, failure: null });
    } catch (error) {
      log(String(error instanceof Error ? error.stack : error));
      reports.push({ row: row.name, verdicts: [], notes, failure: String(error) });
      process.exitCode = 1;
    }
  }
  console.log(printedTable(reports));
  console.log(`written to ${await writeResults(reports, { rounds: options.rounds, quick: options.quick })}`);
}
