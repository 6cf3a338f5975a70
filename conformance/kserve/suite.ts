import { setTimeout as delay } from "node:timers/promises";
import type { CaseResponses, Case, Step } from "./case.ts";
import { caseGroups } from "./cases/index.ts";
import { checkDifference, compareResponses } from "./compare.ts";
import { fixtureNames, type FixtureName } from "./fixtures.ts";
import { NoResponse } from "../../packages/server/src/protocols/raw-grpc-client.ts";
import { sendSteps } from "./send.ts";
import { startFixture, type StartedFixture, type Target } from "./started-fixture.ts";

export interface Selection {
  /** Selects the cases whose names contain this text. */
  readonly only: string;
}

export interface FoundCase {
  readonly group: string;
  readonly item: Case;
}

export interface RecordedCase extends FoundCase {
  /** The responses, or the error that prevented them. */
  readonly answers: CaseResponses | Error;
  /** True if a server of the fixture has died before, so that the effects of earlier cases are missing. */
  readonly isAfterLoss: boolean;
}

export function selectedCases(selection: Selection): FoundCase[] {
  return Object.entries(caseGroups).flatMap(([group, cases]) =>
    cases.filter((item) => item.name.includes(selection.only)).map((item) => ({ group, item })),
  );
}

/** Number of fixtures that run at the same time. Triton waits most of the time: 3 s after a failed load, 60 s for a response that never comes. */
const fixturesAtOnce = 3;

/**
 * Starts each fixture that the selection needs, and runs its cases one after another. Resolves with the cases in the order of the fixtures.
 */
export async function runCases(
  target: Target,
  selection: Selection,
  report: (requested: RecordedCase) => void,
): Promise<RecordedCase[]> {
  const cases = selectedCases(selection);
  const waiting = fixtureNames.flatMap((name) => {
    const mine = cases.filter((entry) => entry.item.fixture === name);
    return mine.length > 0 ? [{ name, mine }] : [];
  });
  const all = new Map<FixtureName, RecordedCase[]>();
  const runNext = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
      all.set(next.name, await runFixture(target, next.name, next.mine, report));
  };
  await Promise.all(Array.from({ length: fixturesAtOnce }, runNext));
  return fixtureNames.flatMap((name) => all.get(name) ?? []);
}

/** The error for a server process that ended during a case, or right before it. */
export class ServerDied extends Error {
  override readonly name = "ServerDied";
}

/** Returns whether the server of these responses can no longer be used. */
export function isLost(responses: CaseResponses | Error): responses is ServerDied | NoResponse {
  return responses instanceof ServerDied || responses instanceof NoResponse;
}

/** Number of servers of one fixture that may crash or hang before its remaining cases are skipped. */
const lostServersMax = 3;

/** Runs the cases one after another. After a crash or hang of the server the next case runs on a new one. */
export async function runFixture(
  target: Target,
  name: FixtureName,
  cases: readonly FoundCase[],
  report: (requested: RecordedCase) => void,
  start = startFixture,
): Promise<RecordedCase[]> {
  const requested: RecordedCase[] = [];
  let fixture: StartedFixture | Error | null = null;
  let lostServers = 0;
  try {
    for (const found of cases) {
      fixture ??= await start(target, name).catch(
        (error: unknown) => new Error(`fixture ${name}: ${String(error).slice(0, 2000)}`),
      );
      const responses: CaseResponses | Error =
        fixture instanceof Error ? fixture : await askCase(target, fixture, found.item);
      const entry = { ...found, answers: responses, isAfterLoss: lostServers > 0 };
      requested.push(entry);
      report(entry);
      if (fixture instanceof Error || !isLost(responses)) continue;
      lostServers += 1;
      await fixture.kill();
      fixture = lostServers < lostServersMax ? null : new Error(`fixture ${name}: ${lostServers} servers were lost`);
    }
  } finally {
    if (fixture !== null && !(fixture instanceof Error)) await fixture.stop();
  }
  return requested;
}

/** Maximum time between the break of a process's connections and its end, in milliseconds: Triton first writes the stack of a crash. */
const endAfterBreakMs = 30_000;

async function askCase(target: Target, fixture: StartedFixture, item: Case): Promise<CaseResponses | Error> {
  const skip = (step: Step) => target.kind === "oracle" && step.difference?.notAsked === true;
  const responses = await sendSteps(fixture.server, item.steps, fixture.masks, skip).catch((error: unknown) =>
    error instanceof Error ? error : new Error(String(error)),
  );
  if (!(responses instanceof Error) || responses instanceof NoResponse) return responses;
  const end = await Promise.race([fixture.server.ended, delay(endAfterBreakMs, null, { ref: false })]);
  if (end === null) return responses;
  return new ServerDied(`the server ended (${end.signal ?? `exit code ${end.exitCode}`}): ${responses.message}`);
}

/** Returns the first difference in our responses to a case; null if there is none. */
export function judge(item: Case, expected: CaseResponses, ours: CaseResponses | Error): string | null {
  if (ours instanceof Error) return ours.message;
  for (const [index, step] of item.steps.entries()) {
    const responses = ours[index] ?? [];
    const wrong =
      step.difference === undefined
        ? compareResponses(expected[index] ?? [], responses, step.compare)
        : checkDifference(step.difference, responses);
    if (wrong !== null) return `step ${index + 1} (${step.request.method} ${step.request.path}): ${wrong}`;
  }
  return null;
}

/**
 * Returns the first difference between two runs of the oracle, with the case's own comparison and masks; null if there
 * is none.
 */
export function judgeRecording(item: Case, recorded: CaseResponses, live: CaseResponses | Error): string | null {
  if (live instanceof Error) return live.message;
  for (const [index, step] of item.steps.entries()) {
    const responses = live[index];
    const before = recorded[index];
    if (!responses || !before) continue;
    const wrong = compareResponses(before, responses, step.compare);
    if (wrong !== null) return `stale recording, step ${index + 1}: ${wrong}`;
  }
  return null;
}
