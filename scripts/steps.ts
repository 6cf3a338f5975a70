import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileCache } from "./source-tree.ts";
import type { TestResult } from "./test-results.ts";

/** One step of a check: a program, a run of Node's test runner, or lanes of functions. */
export type Step =
  | { readonly name: string; readonly command: readonly string[] }
  /** The command takes options of Node's test runner, and then the files; the report names each test that failed. */
  | { readonly name: string; readonly command: readonly string[]; readonly testFiles: readonly string[] }
  /** The lanes run at the same time, and the tasks of a lane one after another. A failed task does not prevent the others. */
  | { readonly name: string; readonly lanes: readonly (readonly Task[])[] };

interface Task {
  readonly name: string;
  /** Rejects when the task fails. */
  readonly run: () => Promise<unknown>;
}

/** Options of Node's test runner for a run whose results are written to a file as well. */
const reporters = (path: string) => [
  "--test-reporter=spec",
  "--test-reporter-destination=stdout",
  `--test-reporter=${join(import.meta.dirname, "test-results.ts")}`,
  `--test-reporter-destination=${path}`,
];

/** The lines of the table of durations. */
const slowestMax = 10;

/**
 * Runs every step, whether or not the ones before it failed, and writes the slowest steps and test files and then a report of the failures
 * at the end. Returns the exit status: 1 when a step failed.
 */
export async function runSteps(steps: readonly Step[]): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), "steps-"));
  const failures: string[] = [];
  const durations: Duration[] = [];
  for (const [index, step] of steps.entries()) {
    process.stdout.write(`\n== ${step.name}\n`);
    const { reason, failed, durations: own } = await runStep(step, join(directory, String(index)));
    durations.push(...own);
    if (reason !== null) failures.push(`  ${step.name}: ${reason}\n${failed.map((line) => `    ${line}\n`).join("")}`);
  }
  rmSync(directory, { recursive: true });
  if (durations.length > 1) process.stdout.write(slowest(durations));
  if (failures.length === 0) return 0;
  process.stderr.write(`\n${failures.length} of ${steps.length} steps failed:\n${failures.join("")}`);
  return 1;
}

/** A step, a task or a test file, and its duration. */
interface Duration {
  readonly name: string;
  readonly seconds: number;
}

interface StepResult {
  /** The reason for the failure of the step, or null. */
  readonly reason: string | null;
  /** Lines about failed tests and tasks. */
  readonly failed: readonly string[];
  readonly durations: readonly Duration[];
}

function slowest(durations: readonly Duration[]): string {
  const shown = durations.toSorted((a, b) => b.seconds - a.seconds).slice(0, slowestMax);
  return `\n== the slowest of ${durations.length} steps and test files\n${shown.map(durationLine).join("")}`;
}

const durationLine = ({ name, seconds }: Duration) => `${seconds.toFixed(1).padStart(8)} s  ${name}\n`;

async function runStep(step: Step, resultsPath: string): Promise<StepResult> {
  if ("lanes" in step) return await runLanes(step.lanes);
  const startedMs = performance.now();
  const reason = runProgram(step, resultsPath);
  const results = "testFiles" in step ? readResults(resultsPath) : [];
  const files = results.flatMap((result) => (result.kind === "file" ? [{ name: result.file, ...result }] : []));
  return {
    reason,
    failed: results.flatMap((result) => (result.kind === "failed" ? [`${result.file}: ${result.name}`] : [])),
    durations: files.length > 0 ? files : [{ name: step.name, seconds: secondsSince(startedMs) }],
  };
}

async function runLanes(lanes: readonly (readonly Task[])[]): Promise<StepResult> {
  const durations: Duration[] = [];
  const failed: string[] = [];
  const runLane = async (tasks: readonly Task[]) => {
    for (const { name, run } of tasks) {
      const startedMs = performance.now();
      await run().catch((error: unknown) => failed.push(`${name}: ${(error as Error).message}`));
      const duration = { name, seconds: secondsSince(startedMs) };
      durations.push(duration);
      process.stdout.write(durationLine(duration));
    }
  };
  await Promise.all(lanes.map(runLane));
  return { reason: failed.length === 0 ? null : `${failed.length} failed`, failed, durations };
}

const secondsSince = (startedMs: number) => (performance.now() - startedMs) / 1000;

/** Runs the program of a step; returns the reason for its failure, or null. */
function runProgram(step: Exclude<Step, { readonly lanes: unknown }>, resultsPath: string): string | null {
  const [program, ...options] = step.command as [string, ...string[]];
  const args = "testFiles" in step ? [...options, ...reporters(resultsPath), ...step.testFiles] : options;
  const env = { ...process.env, NODE_COMPILE_CACHE: compileCache };
  const { status, signal, error } = spawnSync(program, args, { stdio: "inherit", env });
  if (error !== undefined) return error.message;
  if (signal !== null) return `ended by ${signal}`;
  return status === 0 ? null : `exit status ${status}`;
}

function readResults(path: string): readonly TestResult[] {
  try {
    const lines = readFileSync(path, "utf8").split("\n").filter(Boolean);
    return lines.map((line) => JSON.parse(line) as TestResult);
  } catch (error) {
    // The test runner itself did not start.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
