import { readdir } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { InferenceError, type Logger } from "@galatea/base";
import type { OnnxGpus } from "@galatea/server/backends/onnxruntime";
import type { DataDirectories } from "../../data-directory/index.ts";
import { withGpuOrder } from "../gpus.ts";

/** The framework that contains ONNX Runtime for GPUs. */
const frameworkName = "onnxruntime-gpu";
const command = "galatea model add onnxruntime-gpu";

/** Backends that need another build of their library for GPUs, each with the framework that contains it. */
const gpuFrameworks = [
  ["onnxruntime", frameworkName],
  ["tensorflow", "tensorflow-gpu"],
] as const;

type Found = Awaited<ReturnType<OnnxGpus["findLibrary"]>>;

interface Looked {
  readonly directories: Pick<DataDirectories, "frameworks">;
  /** Other variables of the processes that load the library. */
  readonly env: Readonly<Record<string, string>>;
}

/** Returns the environment of a framework; null if it is not set up. */
async function environmentOf(
  { directories }: Pick<Looked, "directories">,
  name: string = frameworkName,
): Promise<string | null> {
  const { frameworkByName, findFramework } = await import("@galatea/server/backends/python");
  const framework = frameworkByName(name);
  if (framework === null) return null;
  return (await findFramework(directories.frameworks, framework))?.directory ?? null;
}

/**
 * Returns the library that `galatea model add` has installed, and the environment of processes that load it.
 * LD_LIBRARY_PATH in it contains CUDA's libraries, which are packages next to the library. Throws UNAVAILABLE with the
 * command that installs the framework.
 */
export async function findOnnxGpuLibrary(looked: Looked): Promise<Found> {
  const environment = await environmentOf(looked);
  if (environment === null) {
    const { notInstalledText } = await import("@galatea/server/backends/python");
    const missing = notInstalledText(looked.directories.frameworks, { name: frameworkName });
    throw new InferenceError("UNAVAILABLE", `ONNX Runtime for GPUs is ${missing}`);
  }
  const packages = await sitePackages(environment);
  const capi = join(packages, "onnxruntime", "capi");
  const library = (await entriesOf(capi)).find((name) => /^libonnxruntime\.so(\.\d+)*$/.test(name));
  if (library === undefined)
    throw new InferenceError("UNAVAILABLE", `'${capi}' contains no libonnxruntime.so: remove it and run: ${command}`);
  const ofCuda = (await entriesOf(join(packages, "nvidia"))).map((name) => join(packages, "nvidia", name, "lib"));
  const inherited = looked.env["LD_LIBRARY_PATH"];
  const searched = [capi, ...ofCuda.toSorted(), ...(inherited === undefined ? [] : [inherited])];
  const processEnv = { ...withGpuOrder(looked.env, 1), LD_LIBRARY_PATH: searched.join(delimiter) };
  return { libraryPath: join(capi, library), processEnv };
}

/**
 * Returns the backends whose library for this machine's GPUs is missing. Their models run on the CPU unless they
 * request a GPU. Logs the command that installs the library.
 */
export function backendsWithoutGpus(
  directories: Pick<DataDirectories, "frameworks">,
  log: Logger,
): () => Promise<ReadonlySet<string>> {
  const said = new Set<string>();
  return async () => {
    const without = new Set<string>();
    for (const [backend, framework] of gpuFrameworks) {
      if ((await environmentOf({ directories }, framework)) !== null) continue;
      without.add(backend);
      if (said.has(backend)) continue;
      said.add(backend);
      const add = `galatea model add ${framework}`;
      log.warning(`models of backend '${backend}' without KIND_GPU run on the CPU, and on the GPUs after: ${add}`);
    }
    return without;
  };
}

async function sitePackages(environment: string): Promise<string> {
  const libraries = join(environment, "lib");
  const python = (await entriesOf(libraries)).find((name) => /^python3\.\d+$/.test(name)) ?? "python3";
  return join(libraries, python, "site-packages");
}

/** Lists a directory; an empty list if it does not exist. */
async function entriesOf(directory: string): Promise<readonly string[]> {
  return await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
}
