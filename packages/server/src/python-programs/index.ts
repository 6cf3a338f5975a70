/** The location of the workers' Python programs, for callers that do not load the Python backend. */
export { workerDirectory } from "./worker-directory.ts";
