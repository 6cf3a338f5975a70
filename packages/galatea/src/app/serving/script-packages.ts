import { join } from "node:path";
import type { DirectoryCache } from "@galatea/server/backends/python";
import { assert, systemClock, type Logger } from "@galatea/base";
import type { PackageKeeper } from "@galatea/runtimes/container-runtimes";
import type { DataDirectories } from "../../data-directory/index.ts";
import { installerEnvironment } from "../passed-environment.ts";

/** Time limit of an installation, in milliseconds. */
const installMsMax = 15 * 60_000;

/** Returns the directory of packages that model scripts require. Models in containers can read it. */
export function scriptPackagesDirectory({ root }: DataDirectories): string {
  return join(root, "script-packages");
}

/**
 * Returns the installer of the packages that model scripts require. Each list of packages is installed once for all
 * containers with the same data directory.
 */
export function scriptPackages(dependencies: {
  readonly directories: DataDirectories;
  readonly log: Logger;
  /**
   * Maximum bytes of installed packages on disk. Unused sets of packages are deleted, the least recently used first.
   */
  readonly bytesMax: number;
}): PackageKeeper {
  const { directories, log, bytesMax } = dependencies;
  let kept: DirectoryCache | null = null;
  return async (name, packages) => {
    const { addPackages, frameworkByName, DirectoryCache } = await import("@galatea/server/backends/python");
    kept ??= new DirectoryCache({ directory: scriptPackagesDirectory(directories), bytesMax, clock: systemClock });
    const framework = frameworkByName(name);
    assert(framework !== null, `a kind of container names the framework ${name}`);
    return await addPackages({
      framework,
      environments: directories.frameworks,
      kept,
      packages,
      env: installerEnvironment(),
      clock: systemClock,
      onProgress: (line) => log.info(`requirements: ${line}`),
      signal: AbortSignal.timeout(installMsMax),
    });
  };
}
