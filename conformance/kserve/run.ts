/**
 * The suite from the command line:
 *   node conformance/kserve/run.ts --target oracle|galatea|both [--record] [--only TEXT] [--cache DIR] [--quiet]
 * `oracle` asks the real tritonserver and fails where a recording is stale (--record writes them anew); `galatea` holds our
 * server against the recordings; `both` does one after the other. Exit code 1 when anything differs.
 */
import { parseArgs } from "node:util";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";
import { caseGroups } from "./cases/index.ts";
import type { Answers } from "./case.ts";
import { readRecording, writeRecording } from "./recording.ts";
import { askAll, judge, judgeRecording, type AskedCase } from "./suite.ts";
import type { Target } from "./started-fixture.ts";

const { values } = parseArgs({
  options: {
    target: { type: "string", default: "both" },
    record: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    cache: { type: "string", default: cacheDirectory(process.env) },
    quiet: { type: "boolean", default: false },
  },
});

const selection = { only: values.only };

async function oracle(): Promise<Target> {
  return {
    kind: "oracle",
    environment: await ensureEnvironment(values.cache, "oracle", { progress: (line) => console.error(line) }),
  };
}

async function record(): Promise<number> {
  const asked = await askAll(await oracle(), selection, progress);
  const failed = asked.filter((entry) => entry.answers instanceof Error);
  for (const [group, cases] of Object.entries(caseGroups)) {
    const answers = new Map<string, Answers>();
    for (const entry of asked) {
      if (entry.group === group && !(entry.answers instanceof Error)) answers.set(entry.item.name, entry.answers);
    }
    if (answers.size > 0) await writeRecording(group, cases, answers);
  }
  for (const entry of failed) console.log(`FAILED ${entry.item.name}: ${(entry.answers as Error).message}`);
  console.log(`recorded ${asked.length - failed.length} of ${asked.length} cases`);
  return failed.length;
}

async function check(target: Target, judgeCase: typeof judge): Promise<number> {
  const asked = await askAll(target, selection, progress);
  const recordings = new Map<string, Awaited<ReturnType<typeof readRecording>>>();
  for (const group of new Set(asked.map((entry) => entry.group))) recordings.set(group, await readRecording(group));
  let wrong = 0;
  for (const entry of asked) {
    const verdict = verdictOf(entry, recordings, judgeCase);
    if (verdict === null) continue;
    wrong++;
    console.log(`DIFFERS ${entry.item.name}: ${verdict}\n`);
  }
  console.log(`${target.kind}: ${asked.length - wrong} of ${asked.length} cases agree`);
  return wrong;
}

function verdictOf(
  entry: AskedCase,
  recordings: ReadonlyMap<string, (item: AskedCase["item"]) => Answers>,
  judgeCase: typeof judge,
): string | null {
  try {
    return judgeCase(entry.item, recordings.get(entry.group)?.(entry.item) ?? [], entry.answers);
  } catch (error) {
    return String(error);
  }
}

function progress(entry: AskedCase): void {
  if (!values.quiet) console.error(`asked ${entry.item.name}`);
}

let wrong = 0;
if (values.record) wrong += await record();
else if (values.target !== "galatea") wrong += await check(await oracle(), judgeRecording);
if (values.target === "galatea" || values.target === "both") wrong += await check({ kind: "galatea" }, judge);
process.exitCode = wrong === 0 ? 0 : 1;
