import { readdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { systemClock } from "@galatea/base";
import {
  addFramework,
  frameworkByName,
  frameworks,
  linkFramework,
  findFramework,
  removeFramework,
} from "@galatea/server/backends/python";
import { dataDirectories, machineFrameworks } from "../data-directory/index.ts";
import type { FrameworkOptions } from "../options/index.ts";
import { installerEnvironment } from "./passed-environment.ts";
import { knownPythons } from "./serving/python.ts";
import { stopSignal } from "./stop-signal.ts";

/**
 * Runs `galatea model`, which installs, removes and lists frameworks. Prints its progress. Resolves with 1 if it fails.
 */
export async function model(options: FrameworkOptions): Promise<number> {
  const { frameworks: directories } = dataDirectories(options.data, process.env);
  const shared = machineFrameworks(process.env);
  const say = (line: string) => void process.stdout.write(`${line}\n`);
  if (options.verb === "list") {
    for (const framework of frameworks) {
      const created = await findFramework(directories, framework);
      const state = created === null ? `not set up: galatea model add ${framework.name}` : created.directory;
      say(`${framework.name}: ${framework.about}; ${framework.packages.join(", ")}; ${state}`);
    }
    return 0;
  }
  const framework = frameworkByName(options.name);
  if (framework === null) {
    const known = frameworks.map(({ name }) => name).join(", ");
    process.stderr.write(`galatea model: unknown framework '${options.name}'; known: ${known}\n`);
    return 1;
  }
  const wheels = options.wheels === null ? null : resolve(options.wheels);
  const problem = wheels === null ? null : await noWheels(wheels);
  if (problem !== null) {
    process.stderr.write(`galatea model: ${problem}\n`);
    return 1;
  }
  using stop = stopSignal();
  const stopping = new AbortController();
  void stop.stopped.then(() => stopping.abort());
  const work = { framework, clock: systemClock, onProgress: say, signal: stopping.signal };
  try {
    if (options.verb === "remove") {
      let wasThere = false;
      for (const directory of directories) wasThere = (await removeFramework({ ...work, directory })) || wasThere;
      say(wasThere ? `${framework.name} is removed` : `${framework.name} was not set up`);
      return 0;
    }
    const directory = options.data === null ? shared : directories[0]!;
    const created = await findFramework(directories, framework);
    const location = await addFramework({
      ...work,
      // A framework that servers already find is neither checked nor installed again.
      directory: created === null ? directory : dirname(created.directory),
      wheels,
      anyBuild: options.anyBuild,
      pythons: options.python === null ? knownPythons : [options.python],
      env: installerEnvironment(),
    });
    if (created === null && directory !== shared) await linkFramework(shared, framework, location);
    say(`${framework.name} is set up in ${location.directory}`);
    return 0;
  } catch (error) {
    if (stopping.signal.aborted)
      process.stderr.write("galatea model: stopped; run the same command again to continue\n");
    else process.stderr.write(`galatea model: ${(error as Error).message}\n`);
    return 1;
  }
}

async function noWheels(directory: string): Promise<string | null> {
  const found = await stat(directory).catch(() => null);
  if (found?.isDirectory() !== true) return `'${directory}' of --wheels is not a directory`;
  const files = await readdir(directory);
  return files.some((file) => file.endsWith(".whl")) ? null : `'${directory}' of --wheels contains no wheels`;
}
