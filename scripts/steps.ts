import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileCache } from "./source-tree.ts";

/** One step of a check: a program, a run of Node's test runner, or a function that rejects when it fails. */
export type Step =
  | { readonly name: string; readonly command: readonly string[] }
  /** The command takes options of Node's test runner, and then the files; the report names each test that failed. */
  | { readonly name: string; readonly command: readonly string[]; readonly testFiles: readonly string[] }
  | { readonly name: string; readonly run: () => Promise<unknown> };

/** Options of Node's test runner for a run whose failed tests are written to a file as well. */
const reporters = (path: string) => [
  "--test-reporter=spec",
  "--test-reporter-destination=stdout",
  `--test-reporter=${join(import.meta.dirname, "failed-tests.ts")}`,
  `--test-reporter-destination=${path}`,
];

/**
 * Runs every step, whether or not the ones before it failed, and writes a report of the failures at the end. Returns the exit status:
 * 1 when a step failed.
 */
export async function runSteps(steps: readonly Step[]): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), "steps-"));
  const failures: string[] = [];
  for (const [index, step] of steps.entries()) {
    process.stdout.write(`\n== ${step.name}\n`);
    const failedTests = join(directory, String(index));
    const reason = await failureOf(step, failedTests);
    if (reason === null) continue;
    const tests = "testFiles" in step ? readLines(failedTests) : [];
    failures.push(`  ${step.name}: ${reason}\n${tests.map((line) => `    ${line}\n`).join("")}`);
  }
  rmSync(directory, { recursive: true });
  if (failures.length === 0) return 0;
  process.stderr.write(`\n${failures.length} of ${steps.length} steps failed:\n${failures.join("")}`);
  return 1;
}

/** Runs one step; returns why it failed, or null. */
async function failureOf(step: Step, failedTests: string): Promise<string | null> {
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
  const args = "testFiles" in step ? [...options, ...reporters(failedTests), ...step.testFiles] : options;
  const env = { ...process.env, NODE_COMPILE_CACHE: compileCache };
  const { status, signal, error } = spawnSync(program, args, { stdio: "inherit", env });
  if (error !== undefined) return error.message;
  if (signal !== null) return `ended by ${signal}`;
  return status === 0 ? null : `exit status ${status}`;
}

function readLines(path: string): readonly string[] {
  try {
    return readFileSync(path, "utf8").split("\n").filter(Boolean);
  } catch (error) {
    // The test runner itself did not start.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
