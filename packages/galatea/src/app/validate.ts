import { resolve } from "node:path";
import { refusedRepository, validateRepository } from "@galatea/server/repository";
import type { BackendOptions } from "../options/index.ts";
import { dataDirectories } from "./directories.ts";
import { BackendChecks } from "./validate-backends.ts";

/**
 * `galatea validate`: every problem of a repository, one line each, in the form editors jump to, and how many models were looked at;
 * 1 when there is an error.
 */
export async function validate(directory: string, { backendDirectory }: BackendOptions): Promise<number> {
  const refusal = await refusedRepository(directory);
  if (refusal !== null) {
    process.stderr.write(`${refusal}\n`);
    return 1;
  }
  await using checks = new BackendChecks(dataDirectories(null, process.env), backendDirectory);
  const { modelCount, problems } = await validateRepository(resolve(directory), (found) => checks.check(found));
  for (const { file, line, column, severity, message } of problems)
    process.stdout.write(`${file}:${line}:${column}: ${severity}: ${message}\n`);
  for (const note of checks.notes) process.stdout.write(`note: ${note}\n`);
  const errorCount = problems.filter((each) => each.severity === "error").length;
  const warningCount = problems.length - errorCount;
  process.stdout.write(`${modelCount} models checked: ${errorCount} errors, ${warningCount} warnings\n`);
  return errorCount === 0 ? 0 : 1;
}
