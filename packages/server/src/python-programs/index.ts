/** The location of the Python programs that workers run. It is a separate module for callers that do not need the Python backend. */
export { workerDirectory } from "./worker-directory.ts";
