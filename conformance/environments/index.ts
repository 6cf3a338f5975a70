/**
 * The surroundings that conformance suites and benches need and the product does not: Python environments with the real
 * clients and the real tritonserver and sets of npm packages, made once below a cache directory and kept, and both servers as started processes.
 *
 * `ensureEnvironment` and `ensurePackages` may be called by any number of processes at once: one makes, the others wait. A directory without
 * its stamp is the remains of an interrupted making and is made anew. `startOracle` and `startGalatea` resolve when the
 * server has said that it listens; the caller stops what it started.
 */
export { ensureEnvironment, type Environment } from "./environment.ts";
export { ensurePackages, packageSetNames } from "./packages.ts";
export { startPostgres, type PostgresRelease, type PostgresServer } from "./postgres-server.ts";
export { environmentNames, type EnvironmentName, type RivalName } from "./recipes.ts";
export { freePorts, launch, type RunningServer, type ServerEnd } from "./launch.ts";
export { inherited, oraclePackage, oracleVersion, runOracle, startOracle } from "./oracle.ts";
export { runGalatea, startGalatea } from "./galatea.ts";
export { cacheDirectory } from "./cache-directory.ts";
export { ensureFramework, ensurePackedEnvironment, frameworkNames, type FrameworkName } from "./frameworks.ts";
