import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { frameworkPython } from "../../examples/framework-python.ts";
import { cacheDirectory } from "./cache-directory.ts";
import { acquireLock } from "./lock.ts";

/** The frameworks that suites run models in. */
export const frameworkNames = ["pytorch", "dali", "tensorflow", "sklearn", "xgboost"] as const;
export type FrameworkName = (typeof frameworkNames)[number];

/** The frameworks that need a GPU. */
type GpuFrameworkName = "onnxruntime-gpu" | "tensorflow-gpu";

/**
 * Installs a framework where `startGalatea` finds it, with `galatea model add`. Throws with the output of the command.
 */
export async function ensureFramework(
  name: FrameworkName | GpuFrameworkName,
  progress: (line: string) => void = () => {},
) {
  const data = join(cacheDirectory(process.env), "server-data");
  return { python: await frameworkPython(name, { data, detail: progress }) };
}

const example = (name: string) => fileURLToPath(new URL(`../../examples/t5/${name}`, import.meta.url));

/**
 * Returns the packed environment of examples/t5. Its script creates it once for each version of the script and the
 * requirements.
 */
export async function ensurePackedEnvironment(): Promise<{ readonly archive: string; readonly python: string }> {
  const files = await Promise.all(["create_hf_env.sh", "requirements.txt"].map((name) => readFile(example(name))));
  const key = createHash("sha256").update(Buffer.concat(files)).digest("hex").slice(0, 12);
  const parent = join(cacheDirectory(process.env), "environments", `t5-${key}`);
  const location = { archive: join(parent, "hf_env.tar.gz"), python: join(parent, "hf_env", "bin", "python") };
  const isMade = async () => (await stat(location.archive).catch(() => null)) !== null;
  if (await isMade()) return location;
  await mkdir(parent, { recursive: true });
  using _lock = await acquireLock(`${parent}.making`, AbortSignal.timeout(600_000));
  if (await isMade()) return location;
  const partial = join(parent, "making.tar.gz");
  await rm(partial, { force: true });
  await promisify(execFile)(example("create_hf_env.sh"), [join(parent, "hf_env"), partial], { maxBuffer: 2 ** 24 });
  await rename(partial, location.archive);
  return location;
}
