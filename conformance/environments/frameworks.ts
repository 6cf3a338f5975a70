import { join } from "node:path";
import { frameworkPython } from "../../examples/framework-python.ts";
import { cacheDirectory } from "./cache-directory.ts";

/** The frameworks that suites run models in. */
export const frameworkNames = ["pytorch", "dali", "tensorflow", "sklearn", "xgboost"] as const;
export type FrameworkName = (typeof frameworkNames)[number];

/** Sets a framework up where `startGalatea` finds it, by the product's own command. Throws with what the command said. */
export async function ensureFramework(name: FrameworkName, progress: (line: string) => void = () => {}) {
  const data = join(cacheDirectory(process.env), "server-data");
  return { python: await frameworkPython(name, { data, detail: progress }) };
}
