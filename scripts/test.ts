import { spawnSync } from "node:child_process";
import {
  cacheDirectory,
  ensureEnvironment,
  ensureFramework,
  ensurePackages,
  environmentNames,
  frameworkNames,
  packageSetNames,
} from "../conformance/environments/index.ts";
import { suitePaths } from "./suites.ts";

/**
 * `npm test`: everything a person can run on a machine without a GPU, in this order. It sets up what it needs: the
 * environments of the suites are made below the cache directory once and kept. The suites run one after another: they start
 * servers, kill them and measure what is left. `npm test -- --core` leaves out what runs models in frameworks, whose packages are
 * gigabytes.
 */
const isCore = process.argv.includes("--core");
const steps: readonly { readonly name: string; readonly command: readonly string[] }[] = [
  { name: "format, lint, types, dead files, unit tests", command: ["npm", "run", "--silent", "check"] },
  {
    name: "suites: tritonserver's recorded answers, real clients, faults, examples",
    command: ["node", "--test", "--test-concurrency=1", ...suitePaths({ core: isCore })],
  },
];

for (const name of environmentNames) {
  process.stdout.write(`Python environment '${name}' ...\n`);
  await ensureEnvironment(cacheDirectory(process.env), name);
}
for (const name of packageSetNames) {
  process.stdout.write(`npm packages '${name}' ...\n`);
  await ensurePackages(cacheDirectory(process.env), name);
}
for (const name of isCore ? [] : frameworkNames) {
  process.stdout.write(`framework '${name}' ...\n`);
  await ensureFramework(name);
}
for (const { name, command } of steps) {
  process.stdout.write(`\n== ${name}\n`);
  const [program, ...args] = command as [string, ...string[]];
  const { status } = spawnSync(program, args, { stdio: "inherit" });
  if (status !== 0) {
    process.stderr.write(`\nfailed: ${name}\n`);
    process.exit(1);
  }
}
