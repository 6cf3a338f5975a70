import { fileURLToPath } from "node:url";

/** The directory of the Python programs that workers run. */
export const workerDirectory = fileURLToPath(new URL("../../python", import.meta.url));
