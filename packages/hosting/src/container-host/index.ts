/** Runs containers of users' own images through a container engine with a Docker-compatible API. */
export { EngineRunner, type EngineRunnerOptions } from "./engine-runner.ts";
export { loadImage } from "./image-load.ts";
