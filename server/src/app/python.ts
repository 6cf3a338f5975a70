import type { Logger } from "../base/index.ts";
import type { Backend } from "../backends/index.ts";
import type { DataDirectories } from "./directories.ts";
export function openPythonBackend(_o: {
  python: string | null;
  log: Logger;
  directories: DataDirectories;
}): Promise<Backend> {
  return Promise.reject(new Error("not yet"));
}
