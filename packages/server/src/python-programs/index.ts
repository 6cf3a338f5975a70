/** The location of the Python programs that workers run. A separate module, for callers that do not need the Python backend. */
export { workerDirectory } from "./worker-directory.ts";
