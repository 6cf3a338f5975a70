/**
 * Runs the suite from the command line: node conformance/kserve/run.ts --help. `oracle` runs the real tritonserver and
 * fails if a recording is stale (--record writes them again instead); `galatea` compares our server with the
 * recordings; `both` does one after the other. The exit code is 1 if anything differs.
 */
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";
import { UsageError } from "../../packages/galatea/src/options/flag.ts";
import { caseGroups } from "./cases/index.ts";
import type { CaseResponses } from "./case.ts";
import { commandLineCases, expectedExitCode, runCommandLine } from "./command-line.ts";
import { suiteHelp, suiteOptions, type PartName, type SuiteOptions } from "./options.ts";
import { readRecording, writeRecording } from "./recording.ts";
import { runCases, isLost, judge, judgeRecording, type RecordedCase } from "./suite.ts";
import type { Target } from "./started-fixture.ts";
import { runClient, compareClientResults, readClientRecording, writeClientRecording } from "./tritonclient/checks.ts";

// A signal ends the process with `exit`, whose handler also ends the started servers.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

const cache = cacheDirectory(process.env);
const options = commandLine();

/**
 * Maximum number of cases without a response. Triton rarely crashes or hangs in some cases, which does not invalidate
 * their recordings; more failures indicate an error of the suite.
 */
const unansweredMax = 5;

/** The parts of the suite. Each resolves with the number of differences. */
const parts: Readonly<Record<PartName, (target: Target) => Promise<number>>> = {
  cases: (target) => (recording(target) ? recordCases(target) : checkCases(target)),
  tritonclient: checkClient,
  "command-line": checkCommandLine,
};

const recording = (target: Target) => options.record && target.kind === "oracle";
const say = (line: string) => console.log(line);
const progress = (line: string) => {
  if (!options.quiet) console.error(line);
};

async function recordCases(target: Target): Promise<number> {
  const requested = await runCases(target, { only: options.only }, (entry) => progress(`completed ${entry.item.name}`));
  for (const [group, cases] of Object.entries(caseGroups)) {
    const responses = new Map<string, CaseResponses>();
    for (const entry of requested) {
      if (entry.group === group && !(entry.answers instanceof Error)) responses.set(entry.item.name, entry.answers);
    }
    if (responses.size > 0) await writeRecording(group, cases, responses);
  }
  let failed = 0;
  for (const { item, answers } of requested) {
    if (!(answers instanceof Error)) continue;
    failed++;
    say(`FAILED ${item.name}: ${answers.message}`);
  }
  say(`recorded ${requested.length - failed} of ${requested.length} cases`);
  return failed;
}

async function checkCases(target: Target): Promise<number> {
  const requested = await runCases(target, { only: options.only }, (entry) => progress(`completed ${entry.item.name}`));
  const recordings = new Map<string, (item: RecordedCase["item"]) => CaseResponses>();
  for (const group of new Set(requested.map((entry) => entry.group))) recordings.set(group, await readRecording(group));
  let wrong = 0;
  let unanswered = 0;
  for (const entry of requested) {
    if (target.kind === "oracle" && isLost(entry.answers)) {
      unanswered++;
      say(`NO RESPONSE ${entry.item.name}: ${entry.answers.message}\n`);
      continue;
    }
    const verdict = verdictOf(entry, recordings, target.kind === "oracle" ? judgeRecording : judge);
    if (verdict === null) continue;
    if (target.kind === "oracle" && entry.isAfterLoss) unanswered++;
    else wrong++;
    say(`DIFFERS ${entry.item.name}: ${verdict}\n`);
  }
  say(
    `${target.kind}: ${requested.length - wrong - unanswered} of ${requested.length} cases agree, ${unanswered} got no response`,
  );
  return unanswered > unansweredMax ? wrong + unanswered : wrong;
}

function verdictOf(
  entry: RecordedCase,
  recordings: ReadonlyMap<string, (item: RecordedCase["item"]) => CaseResponses>,
  judgeCase: typeof judge,
): string | null {
  try {
    return judgeCase(entry.item, recordings.get(entry.group)?.(entry.item) ?? [], entry.answers);
  } catch (error) {
    return String(error);
  }
}

async function checkClient(target: Target): Promise<number> {
  const clients = await ensureEnvironment(options.cache, "clients", { progress });
  const results = await runClient(target, clients);
  const count = Object.keys(results).length;
  if (recording(target)) {
    await writeClientRecording(results);
    say(`recorded ${count} checks of tritonclient`);
    return 0;
  }
  const wrong = compareClientResults(await readClientRecording(), results);
  for (const line of wrong) say(`DIFFERS tritonclient, ${line}\n`);
  say(`${target.kind}: ${count - wrong.length} of ${count} checks of tritonclient agree`);
  return wrong.length;
}

async function checkCommandLine(target: Target): Promise<number> {
  let wrong = 0;
  for (const item of commandLineCases) {
    const result = await runCommandLine(target, item);
    if (result.exitCode === expectedExitCode(target, item) && result.said) continue;
    wrong++;
    say(
      `DIFFERS command line, ${item.name}: exit code ${result.exitCode}, output with '${item.says}': ${result.said}\n${result.output}\n`,
    );
  }
  say(`${target.kind}: ${commandLineCases.length - wrong} of ${commandLineCases.length} starts agree`);
  return wrong;
}

const targets: Target[] = [];
if (options.target !== "galatea") {
  targets.push({ kind: "oracle", environment: await ensureEnvironment(options.cache, "oracle", { progress }) });
}
if (options.target !== "oracle" && !options.record) targets.push({ kind: "galatea" });
let wrong = 0;
for (const target of targets) for (const part of options.parts) wrong += await parts[part](target);
process.exitCode = wrong === 0 ? 0 : 1;

function commandLine(): SuiteOptions {
  try {
    const input = suiteOptions(process.argv.slice(2), cache);
    if (input !== null) return input;
    process.stdout.write(suiteHelp(cache));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`conformance: ${error.message}`);
    return process.exit(1);
  }
  return process.exit(0);
}
