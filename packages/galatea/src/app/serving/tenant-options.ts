import { join, relative, resolve } from "node:path";
import type { FixedPath, TenantOptions } from "@galatea/server/backends/python";
import type { OpenedContainer } from "@galatea/runtimes/container-runtimes";
import { gpuDevices } from "@galatea/server/gpus";
import type { BackendDependencies } from "./backend-dependencies.ts";
import { processDirectory } from "./process-directory.ts";
import { scriptPackagesDirectory } from "./script-packages.ts";

/**
 * Memory that tenants share in addition to the model budget, in bytes: interpreters with their libraries, tensors,
 * scratch files.
 */
const sharedBytes = 2 * 2 ** 30;

/** Returns the settings of tenants' isolation; null if Python models are isolated only as processes. */
export function tenantOptions({ options, plan, directories }: BackendDependencies): TenantOptions | null {
  const isContainer = options.container?.fromEnvironment === true;
  if ((options.workerConfinement ?? (isContainer ? "tenants" : "processes")) === "processes") return null;
  const opened = plan?.opened ?? null;
  return {
    users: options.workerUsers,
    writePaths: options.workerWrite,
    tcpPorts: options.workerConnect,
    memoryBytesMax: options.workerMemoryBytes,
    processesMax: options.workerProcesses,
    scratchBytesMax: options.workerScratchBytes,
    // The operator's files that the models of all tenants use.
    readPaths: [
      ...options.workerRead,
      ...(opened === null ? [] : [...opened.readPaths, scriptPackagesDirectory(directories)]),
      ...(options.backendDirectory === null ? [] : [resolve(options.backendDirectory)]),
    ],
    gpuDevices,
    opensPort: opened?.opensPort === true,
    fixedPaths: options.container === null ? [] : fixedPaths(resolve(options.container.mlRoot), opened),
    allMemoryBytesMax: options.memoryBudgetBytes === null ? null : options.memoryBudgetBytes + sharedBytes,
    directory: processDirectory(join(directories.cache, "workers")),
    dataDirectory: directories.root,
    slicesDirectory: join(directories.cache, "worker-users"),
  };
}

/** Returns the paths at which code for SageMaker's containers expects a container's files. */
function fixedPaths(mlRoot: string, opened: OpenedContainer | null): readonly FixedPath[] {
  const location = "/opt/ml";
  // An archive for Triton is a repository. Any other archive is the model itself.
  const model: FixedPath = { path: join(location, "model"), leadsTo: opened === null ? "around-model" : "model" };
  const shared = (opened?.readPaths ?? []).map((directory) => ({
    path: join(location, relative(mlRoot, directory)),
    leadsTo: { directory },
  }));
  return [model, ...shared];
}
