/** Where the Python programs of workers are, for callers that do not load the Python backend. */
export { workerDirectory } from "./worker-directory.ts";
