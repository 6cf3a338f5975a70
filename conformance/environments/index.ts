/**
 * Environments for the conformance suites and benches: Python environments with the real clients and the real
 * tritonserver, sets of npm packages, and both servers as processes. Environments are created once below a cache
 * directory. `ensureEnvironment` and `ensurePackages` may be called by several processes at once: one creates, the
 * others wait. A directory without its stamp is left over from an interrupted creation and is created again.
 * `startOracle` and `startGalatea` resolve when the server has logged its listeners; the caller stops the server.
 */
export { ensureEnvironment, type Environment } from "./environment.ts";
export { ensurePackages, packageSetNames } from "./packages.ts";
export { startPostgres, type PostgresRelease, type PostgresServer } from "./postgres-server.ts";
export { ensureTool, NoGo } from "./go-tools.ts";
export { environmentNames, type EnvironmentName, type RivalName } from "./recipes.ts";
export { freePorts, launch, type RunningServer, type ServerEnd } from "./launch.ts";
export { inherited, oraclePackage, oracleVersion, runOracle, startOracle } from "./oracle.ts";
export { runGalatea, startGalatea } from "./galatea.ts";
export { cacheDirectory } from "./cache-directory.ts";
export { ensureFramework, ensurePackedEnvironment, frameworkNames, type FrameworkName } from "./frameworks.ts";
