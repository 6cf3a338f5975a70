import { resolve } from "node:path";
import { silentLogger, systemClock } from "@galatea/base";
import { ModelChecks } from "@galatea/server/engine";
import { checkRepositoryPath, validateRepository } from "@galatea/server/repository";
import type { BackendOptions } from "../options/index.ts";
import { dataDirectories } from "../data-directory/index.ts";
import { openGpus } from "./gpus.ts";
import { backendConfig, backendRows } from "./serving/backend-rows.ts";
import { backendsWithoutGpus } from "./serving/onnx-gpus.ts";

/**
 * Runs `galatea validate`. Prints every problem of a repository on one line, in a format that editors parse, and the
 * number of models. Resolves with 1 if there is an error. Models are checked with the backends and the flags of
 * `serve`.
 */
export async function validate(directory: string, options: BackendOptions): Promise<number> {
  const refusal = await checkRepositoryPath(directory);
  if (refusal !== null) {
    process.stderr.write(`${refusal}\n`);
    return 1;
  }
  const directories = dataDirectories(options.data, process.env);
  const log = silentLogger;
  await using gpus = await openGpus(process.env, 0, log);
  const parts = {
    options: { ...options, container: null },
    plan: null,
    log,
    directories,
    gpus,
    onConfinement: () => {},
  };
  await using checks = new ModelChecks({
    backends: backendRows.map((row) => row(parts)),
    backendConfig: (backend) => backendConfig(options, backend),
    gpuCount: gpus.count,
    clock: systemClock,
  });
  const { modelCount, problems } = await validateRepository(resolve(directory), checks.check, {
    gpuCount: gpus.count,
    cpuBackends: backendsWithoutGpus(directories, log),
  });
  for (const { file, line, column, severity, message } of problems)
    process.stdout.write(`${file}:${line}:${column}: ${severity}: ${message.replaceAll("\n", " ")}\n`);
  for (const note of checks.notes) process.stdout.write(`note: ${note}\n`);
  const errorCount = problems.filter((each) => each.severity === "error").length;
  const warningCount = problems.length - errorCount;
  process.stdout.write(`${modelCount} models checked: ${errorCount} errors, ${warningCount} warnings\n`);
  return errorCount === 0 ? 0 : 1;
}
