/**
 * Sends malformed inputs to every interface of the server: node conformance/fuzz/run.ts --help. Prints a table. If an
 * input causes a crash, a hang, an undocumented response or a memory leak, prints the command that repeats it, and the
 * exit code is 1.
 */
import { randomInt } from "node:crypto";
import { UsageError } from "../../packages/galatea/src/options/flag.ts";
import { attackTarget, type AttackReport } from "./attack.ts";
import { fuzzHelp, fuzzOptions, type FuzzOptions } from "./options.ts";
import { attackTable } from "./report.ts";
import { writeFigures } from "../results.ts";
import { targets } from "./targets/index.ts";

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

const surroundings = { targetNames: targets.map(({ name }) => name), newSeed: () => randomInt(2 ** 31) };
try {
  const options = fuzzOptions(process.argv.slice(2), surroundings);
  if (options === null) process.stdout.write(fuzzHelp());
  else if (options.list) for (const { name, about } of targets) console.log(`${name.padEnd(16)} ${about}`);
  else await fuzz(options);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`fuzz: ${error.message}`);
  process.exitCode = 1;
}

async function fuzz({ target: expected, count, seed, path, record }: FuzzOptions): Promise<void> {
  console.log(`seed ${seed}`);
  const chosen = targets.filter(({ name }) => expected === null || expected.has(name));
  const shares = chosen.reduce((sum, { share }) => sum + share, 0);
  const reports: AttackReport[] = [];
  for (const target of chosen) {
    console.error(`# ${target.name}`);
    const report = await attackTarget(target, { count: Math.ceil((count * target.share) / shares), seed, path });
    if (report.failure !== null) console.error(`${target.name}: ${report.failure}`);
    reports.push(report);
  }
  console.log(attackTable(reports));
  if (record) console.log(`written to ${await writeFigures("fuzz", { seed, count, reports })}`);
  if (reports.some(({ failure }) => failure !== null)) process.exitCode = 1;
}
