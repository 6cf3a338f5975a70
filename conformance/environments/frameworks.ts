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

/** Those that are of use on a machine with a GPU alone. */
type GpuFrameworkName = "onnxruntime-gpu" | "tensorflow-gpu";

/** Sets a framework up where `startGalatea` finds it, by the product's own command. Throws with what the command said. */
export async function ensureFramework(
  name: FrameworkName | GpuFrameworkName,
  progress: (line: string) => void = () => {},
) {
  const data = join(cacheDirectory(process.env), "server-data");
  return { python: await frameworkPython(name, { data, detail: progress }) };
}

const example = (name: string) => fileURLToPath(new URL(`../../examples/t5/${name}`, import.meta.url));

/** The packed environment of examples/t5, made once by its script for each version of that and its requirements. */
export async function ensurePackedEnvironment(): Promise<{ readonly archive: string; readonly python: string }> {
  const files = await Promise.all(["create_hf_env.sh", "requirements.txt"].map((name) => readFile(example(name))));
  const key = createHash("sha256").update(Buffer.concat(files)).digest("hex").slice(0, 12);
  const parent = join(cacheDirectory(process.env), "environments", `t5-${key}`);
  const place = { archive: join(parent, "hf_env.tar.gz"), python: join(parent, "hf_env", "bin", "python") };
  const isMade = async () => (await stat(place.archive).catch(() => null)) !== null;
  if (await isMade()) return place;
  await mkdir(parent, { recursive: true });
  using _lock = await acquireLock(`${parent}.making`, AbortSignal.timeout(600_000));
  if (await isMade()) return place;
  const partial = join(parent, "making.tar.gz");
  await rm(partial, { force: true });
  await promisify(execFile)(example("create_hf_env.sh"), [join(parent, "hf_env"), partial], { maxBuffer: 2 ** 24 });
  await rename(partial, place.archive);
  return place;
}
