import { parseArgs } from "node:util";
import {
  cacheDirectory,
  ensureEnvironment,
  ensureFramework,
  ensurePackages,
  environmentNames,
  frameworkNames,
  packageSetNames,
  type EnvironmentName,
} from "../conformance/environments/index.ts";
import { checkSteps } from "./check.ts";
import { runSteps, type Step } from "./steps.ts";
import { filesOf, suites, type Suite } from "./suites.ts";

/**
 * `npm test` runs the checks and its suites of `suites.ts`. `--rest` (`npm run test:rest`) and `--system` (`npm run
 * test:system`) run their suites, and `--all` (`npm run test:all`) everything that needs no GPU. Each run creates the
 * environments of its suites below the cache directory, once.
 */
const { values } = parseArgs({
  options: { all: { type: "boolean" }, rest: { type: "boolean" }, system: { type: "boolean" } },
});

/**
 * Time limit of one test and of one file of a suite, in milliseconds. A wait for a condition ends earlier, with the condition in its error
 * (`testTimeoutMs`). This limit ends other hangs, for example of a file whose process does not exit.
 */
const suiteHangMs = 900_000;

/** The environments of the suites of `npm test`: half a gigabyte on disk. */
const testEnvironments: readonly EnvironmentName[] = ["ruff", "clients"];

const isAll = values.all === true;
const only: Suite["run"] = values.rest === true ? "rest" : values.system === true ? "system" : "test";
const isWhole = isAll || only === "rest";
const cache = cacheDirectory(process.env);
const chosen = suites.filter(({ run }) => isAll || run === only);

const suiteStep = (name: string, of: readonly Suite[], atOnce: number): readonly Step[] => {
  const command = ["node", "--test", `--test-timeout=${suiteHangMs}`, `--test-concurrency=${atOnce}`];
  return of.length === 0 ? [] : [{ name, command, testFiles: filesOf(of) }];
};

const environmentTasks = (isWhole ? environmentNames : testEnvironments).map((name) => ({
  name: `Python environment '${name}'`,
  run: () => ensureEnvironment(cache, name),
}));
const packageTasks = packageSetNames.map((name) => ({
  name: `npm packages '${name}'`,
  run: () => ensurePackages(cache, name),
}));
/** In one lane, because `galatea model add` installs one framework at a time. */
const frameworkTasks = frameworkNames.map((name) => ({
  name: `framework '${name}'`,
  run: () => ensureFramework(name),
}));

process.exitCode = await runSteps([
  {
    name: "environments",
    lanes: isWhole ? [[...environmentTasks, ...packageTasks], frameworkTasks] : [environmentTasks],
  },
  ...(isAll || only === "test" ? checkSteps : []),
  ...(isWhole ? [{ name: "documentation site", command: ["npm", "run", "--silent", "docs"] }] : []),
  ...suiteStep(
    "suites, two at a time: recorded responses, real clients, faults, examples",
    chosen.filter(({ alone }) => alone !== true),
    2,
  ),
  ...suiteStep(
    "suites, one at a time: these compare wall time or take the machine's memory",
    chosen.filter(({ alone }) => alone === true),
    1,
  ),
]);
