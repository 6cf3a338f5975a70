import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { systemClock, type Logger } from "../base/index.ts";
import type { Backend } from "../backends/index.ts";
import type { DataDirectories } from "./directories.ts";
import { modelEnvironment, passedEnvironment } from "./passed-environment.ts";

/** What models find without bringing an environment of their own. */
const packages = ["numpy", "tokenizers"];
const pythons = ["python3", "python3.13", "python3.12", "python3.11", "python3.10", "python3.9"];

export interface PythonParts {
  /** `--python`; null makes an environment of our own when it is first needed. */
  readonly python: string | null;
  readonly log: Logger;
  readonly directories: DataDirectories;
}

/** The interpreter that models run with: the one given, or the product's own environment, made once. */
export async function findPython({ python, log, directories }: PythonParts): Promise<string> {
  if (python !== null) return python;
  const { preparePythonEnvironment } = await import("../backends/python/index.ts");
  return preparePythonEnvironment({
    dataDirectory: directories.root,
    packages,
    pythons,
    env: { ...passedEnvironment(), PIP_QUIET: "1" },
    clock: systemClock,
    onProgress: (line) => log.info(`python environment: ${line}`),
    signal: new AbortController().signal,
  });
}

/** Whether `findPython` has nothing to make. */
export async function isPythonThere({ python, directories }: PythonParts): Promise<boolean> {
  if (python !== null) return true;
  const { madePythonEnvironment } = await import("../backends/python/index.ts");
  return (await madePythonEnvironment({ dataDirectory: directories.root, packages })) !== null;
}

export async function openPythonBackend(parts: PythonParts): Promise<Backend> {
  const { createPythonBackend, environmentDefaults, pythonBackendDefaults } =
    await import("../backends/python/index.ts");
  return createPythonBackend({
    ...pythonBackendDefaults,
    ...environmentDefaults,
    python: await findPython(parts),
    pythonEnv: modelEnvironment(),
    environmentsDirectory: join(parts.directories.cache, "python-environments"),
    workerDirectory: fileURLToPath(new URL("../../python", import.meta.url)),
    clock: systemClock,
    logger: parts.log,
    random: Math.random,
  });
}
