import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { validateRepository } from "../repository/index.ts";

/** `galatea validate`: every problem of a repository, one line each, in the form editors jump to; 1 when there is an error. */
export async function runValidate(directory: string | undefined): Promise<number> {
  if (directory === undefined || !existsSync(directory)) {
    process.stderr.write(
      directory === undefined ? "usage: galatea validate <repository>\n" : `${directory} does not exist\n`,
    );
    return 1;
  }
  const problems = await validateRepository(resolve(directory));
  for (const { file, line, column, severity, message } of problems)
    process.stdout.write(`${file}:${line}:${column}: ${severity}: ${message}\n`);
  const errorCount = problems.filter((each) => each.severity === "error").length;
  process.stdout.write(`${errorCount} errors, ${problems.length - errorCount} warnings\n`);
  return errorCount === 0 ? 0 : 1;
}
