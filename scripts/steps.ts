import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileCache } from "./source-tree.ts";
import type { TestResult } from "./test-results.ts";

/** One step of a check: a program, a run of Node's test runner, or a function that rejects on failure. */
export type Step =
  | { readonly name: string; readonly command: readonly string[] }
  /** The command takes options of Node's test runner, and then the files; the report names each test that failed. */
  | { readonly name: string; readonly command: readonly string[]; readonly testFiles: readonly string[] }
  | { readonly name: string; readonly run: () => Promise<unknown> };

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
    const written = join(directory, String(index));
    const startedMs = performance.now();
    const reason = await failureOf(step, written);
    const results = "testFiles" in step ? readResults(written) : [];
    const files = results.flatMap((result) => (result.kind === "file" ? [{ name: result.file, ...result }] : []));
    durations.push(
      ...(files.length > 0 ? files : [{ name: step.name, seconds: (performance.now() - startedMs) / 1000 }]),
    );
    if (reason === null) continue;
    const tests = results.flatMap((result) => (result.kind === "failed" ? [`${result.file}: ${result.name}`] : []));
    failures.push(`  ${step.name}: ${reason}\n${tests.map((line) => `    ${line}\n`).join("")}`);
  }
  rmSync(directory, { recursive: true });
  if (durations.length > 1) process.stdout.write(slowest(durations));
  if (failures.length === 0) return 0;
  process.stderr.write(`\n${failures.length} of ${steps.length} steps failed:\n${failures.join("")}`);
  return 1;
}

/** A step or a test file, and its duration. */
interface Duration {
  readonly name: string;
  readonly seconds: number;
}

function slowest(durations: readonly Duration[]): string {
  const shown = durations.toSorted((a, b) => b.seconds - a.seconds).slice(0, slowestMax);
  const lines = shown.map(({ name, seconds }) => `${seconds.toFixed(1).padStart(8)} s  ${name}\n`);
  return `\n== the slowest of ${durations.length} steps and test files\n${lines.join("")}`;
}

/** Runs one step; returns the reason for its failure, or null. */
async function failureOf(step: Step, results: string): Promise<string | null> {
  if ("run" in step) {
    try {
      await step.run();
      return null;
    } catch (error) {
      process.stderr.write(`${String(error)}\n`);
      return error instanceof Error ? error.message : String(error);
    }
  }
  const [program, ...options] = step.command as [string, ...string[]];
  const args = "testFiles" in step ? [...options, ...reporters(results), ...step.testFiles] : options;
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
