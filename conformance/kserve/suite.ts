import type { Answers, Case, Step } from "./case.ts";
import { caseGroups } from "./cases/index.ts";
import { checkDifference, compareAnswers } from "./compare.ts";
import { fixtureNames, type FixtureName } from "./fixtures.ts";
import { sendSteps } from "./send.ts";
import { startFixture, type Target } from "./started-fixture.ts";

export interface Selection {
  /** Cases whose name contains this. */
  readonly only: string;
}

export interface AskedCase {
  readonly group: string;
  readonly item: Case;
  /** What went wrong before there was an answer to compare. */
  readonly answers: Answers | Error;
}

export function selectedCases(selection: Selection): { group: string; item: Case }[] {
  return Object.entries(caseGroups).flatMap(([group, cases]) =>
    cases.filter((item) => item.name.includes(selection.only)).map((item) => ({ group, item })),
  );
}

/** Starts each fixture that the selection needs and asks its cases one after another. */
export async function askAll(
  target: Target,
  selection: Selection,
  report: (asked: AskedCase) => void,
): Promise<AskedCase[]> {
  const cases = selectedCases(selection);
  const all: AskedCase[] = [];
  for (const name of fixtureNames) {
    const mine = cases.filter((entry) => entry.item.fixture === name);
    if (mine.length > 0) all.push(...(await askFixture(target, name, mine, report)));
  }
  return all;
}

export async function askFixture(
  target: Target,
  name: FixtureName,
  cases: readonly { group: string; item: Case }[],
  report: (asked: AskedCase) => void,
): Promise<AskedCase[]> {
  const asked: AskedCase[] = [];
  const fixture = await startFixture(target, name).catch(
    (error: unknown) => new Error(`fixture ${name}: ${String(error).slice(0, 2000)}`),
  );
  if (fixture instanceof Error) {
    for (const entry of cases) asked.push({ ...entry, answers: fixture });
    return asked;
  }
  try {
    const skip = (step: Step) => target.kind === "oracle" && step.difference?.notAsked === true;
    for (const { group, item } of cases) {
      const answers = await sendSteps(fixture.server, item.steps, fixture.masks, skip).catch(
        (error: unknown) => new Error(String(error)),
      );
      const entry = { group, item, answers };
      asked.push(entry);
      report(entry);
    }
  } finally {
    await fixture.stop();
  }
  return asked;
}

/** What is wrong with our answers to a case; null when nothing is. */
export function judge(item: Case, expected: Answers, ours: Answers | Error): string | null {
  if (ours instanceof Error) return ours.message;
  for (const [index, step] of item.steps.entries()) {
    const answers = ours[index] ?? [];
    const wrong =
      step.difference === undefined
        ? compareAnswers(expected[index] ?? [], answers, step.compare)
        : checkDifference(step.difference, answers);
    if (wrong !== null) return `step ${index + 1} (${step.request.method} ${step.request.path}): ${wrong}`;
  }
  return null;
}

/** Whether two runs of the oracle agree; `compare` is the case's own, so that masks apply. */
export function judgeRecording(item: Case, recorded: Answers, live: Answers | Error): string | null {
  if (live instanceof Error) return live.message;
  for (const [index, step] of item.steps.entries()) {
    const answers = live[index];
    const before = recorded[index];
    if (!answers || !before) continue;
    const wrong = compareAnswers(before, answers, step.compare);
    if (wrong !== null) return `stale recording, step ${index + 1}: ${wrong}`;
  }
  return null;
}
