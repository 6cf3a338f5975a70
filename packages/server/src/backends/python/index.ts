/**
 * The Python backend: runs models written for `triton_python_backend_utils`. Each instance is a worker process, forked from an interpreter
 * that has imported the usual modules (a zygote). Tensors are passed in the namespace's arena. Linux only. The backend owns all of these
 * processes: disposing it, after its models, ends them. `preparePythonEnvironment` creates the environment for models without one of their
 * own.
 */
export { createPythonBackend, pythonBackendDefaults, type PythonBackendOptions } from "./python-backend.ts";
export { checkPythonModel } from "./check-model.ts";
export { environmentDefaults } from "./environments.ts";
export { DirectoryCache } from "./directory-cache.ts";
export {
  findPythonEnvironment,
  createPythonEnvironment,
  preparePythonEnvironment,
  type PrepareOptions,
} from "./prepare-environment.ts";
export { frameworkRunners, runnersInDirectory, type FindPythonRunner } from "./runners.ts";
export { addFramework, removeFramework } from "./frameworks/add-framework.ts";
export { addPackages } from "./frameworks/added-packages.ts";
export { frameworkByName, frameworks } from "./frameworks/framework-rows.ts";
export { linkFramework, findFramework, notInstalledText, frameworkLocation } from "./frameworks/framework-store.ts";
export type { ConfinementRow, FixedPath, TenantOptions } from "./confinement-plan.ts";
