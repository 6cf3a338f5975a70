/**
 * The Python backend: models written for `triton_python_backend_utils`, each instance a worker process forked from a warm interpreter,
 * tensors passed in the namespace's arena. Linux only. `createPythonBackend` owns every process below it: disposing it (after its models)
 * ends them. `preparePythonEnvironment` creates the environment of models that bring none.
 */
export { createPythonBackend, pythonBackendDefaults, type PythonBackendOptions } from "./python-backend.ts";
export { checkPythonModel } from "./check-model.ts";
export { environmentDefaults } from "./environments.ts";
export { KeptDirectories } from "./kept-directories.ts";
export {
  madePythonEnvironment,
  makePythonEnvironment,
  preparePythonEnvironment,
  type PrepareOptions,
} from "./prepare-environment.ts";
export { frameworkRunners, runnersIn, type FindPythonRunner } from "./runners.ts";
export { addFramework, removeFramework } from "./frameworks/add-framework.ts";
export { addPackages } from "./frameworks/added-packages.ts";
export { frameworkNamed, frameworks } from "./frameworks/framework-rows.ts";
export { linkFramework, madeFramework, notSetUpText, frameworkLocation } from "./frameworks/framework-store.ts";
export type { ConfinementRow, FixedPath, TenantOptions } from "./confinement-plan.ts";
