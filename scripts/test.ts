import {
  cacheDirectory,
  ensureEnvironment,
  ensureFramework,
  ensurePackages,
  environmentNames,
  frameworkNames,
  packageSetNames,
} from "../conformance/environments/index.ts";
import { checkSteps } from "./check.ts";
import { runSteps } from "./steps.ts";
import { suitePaths } from "./suites.ts";

/**
 * `npm test`: everything a person can run on a machine without a GPU, in this order. It sets up what it needs: the
 * environments of the suites are made below the cache directory once and kept. The suites run one after another: they start
 * servers, kill them and measure what is left. `npm test -- --core` leaves out what runs models in frameworks, whose packages are
 * gigabytes.
 */
/** The most that one test of a suite may take, in milliseconds: some train models or set frameworks up. A hung test fails then. */
const suiteHangMs = 1_800_000;
const isCore = process.argv.includes("--core");
const cache = cacheDirectory(process.env);
process.exitCode = await runSteps([
  ...environmentNames.map((name) => ({
    name: `Python environment '${name}'`,
    run: () => ensureEnvironment(cache, name),
  })),
  ...packageSetNames.map((name) => ({ name: `npm packages '${name}'`, run: () => ensurePackages(cache, name) })),
  ...(isCore ? [] : frameworkNames).map((name) => ({ name: `framework '${name}'`, run: () => ensureFramework(name) })),
  ...checkSteps,
  {
    name: "suites: tritonserver's recorded answers, real clients, faults, examples",
    command: ["node", "--test", `--test-timeout=${suiteHangMs}`, "--test-concurrency=1"],
    testFiles: suitePaths({ core: isCore }),
  },
]);
