/**
 * Kills processes and loads and unloads models under load: node conformance/soak/run.ts --help. The exit code is 1 if a
 * request was lost, was answered twice or wrongly or with an undocumented error, if a measured value grew, or if
 * something was left behind.
 */
import { randomInt } from "node:crypto";
import { UsageError } from "../../packages/galatea/src/options/flag.ts";
import { writeFigures } from "../results.ts";
import { soakHelp, soakOptions, type SoakOptions } from "./options.ts";
import { soak } from "./soak.ts";

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

try {
  const options = soakOptions(process.argv.slice(2), () => randomInt(2 ** 31));
  if (options === null) process.stdout.write(soakHelp());
  else await run(options);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`soak: ${error.message}`);
  process.exitCode = 1;
}

async function run(options: SoakOptions): Promise<void> {
  console.log(`seed ${options.seed}`);
  const report = await soak(options, (line) => console.error(line));
  const { requested: asked, responseCount: answered, errors, disruptions, verdicts, rounds, seconds } = report;
  console.log(`${rounds} rounds in ${seconds.toFixed(0)} s`);
  console.log(`requests ${JSON.stringify(asked)}, responses ${answered}, errors ${JSON.stringify(errors)}`);
  console.log(`disruptions ${JSON.stringify(disruptions)}`);
  for (const { name, unit, first, last, growth, growthMax, isFlat } of verdicts) {
    const figures = `${first.toFixed(1)} to ${last.toFixed(1)} ${unit}, grew by ${growth.toFixed(1)}, at most ${growthMax}`;
    console.log(`${isFlat ? "flat " : "GREW "} ${name}: ${figures}`);
  }
  if (options.record) console.log(`written to ${await writeFigures("soak", { ...options, ...report })}`);
  if (verdicts.some(({ isFlat }) => !isFlat)) process.exitCode = 1;
}
