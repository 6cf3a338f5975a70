import { realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { InferenceError } from "@galatea/base";
import type { ModelConfig } from "../../modelconfig/index.ts";
import type { ExecutionProvider } from "../../native/index.ts";
import type { ModelSource } from "../backend.ts";
import type { DeviceBytes } from "../device-bytes.ts";
import { pathOptions, providersOnGpu } from "./provider-options.ts";

/** A build of ONNX Runtime whose providers run models on GPUs. */
export interface GpuLibrary {
  /** libonnxruntime.so.*, its providers' libraries beside it. */
  readonly libraryPath: string;
  /** Of the processes that open it: it finds what it needs by LD_LIBRARY_PATH. */
  readonly processEnv: Readonly<Record<string, string>>;
}

/** What this backend uses of the machine's GPUs. */
export interface OnnxGpus {
  /** How many models may be placed on. */
  readonly count: number;
  /** Throws UNAVAILABLE, with what to do, where no such library is set up. */
  readonly findLibrary: () => Promise<GpuLibrary>;
  /** What processes hold of GPUs. */
  readonly bytesOf: (pids: readonly number[]) => Promise<DeviceBytes>;
  /**
   * Whether models may keep TensorRT's engines in files of their own. An engine is code: where tenants share a process, one that a
   * tenant's archive brings would run with the others' tensors in reach.
   */
  readonly keepsEngines: boolean;
  /** What runs a model on a GPU, best first. */
  readonly providersOn: (config: ModelConfig, device: number) => readonly ExecutionProvider[];
}

export const noGpus: OnnxGpus = {
  count: 0,
  findLibrary: () => Promise.reject(new InferenceError("UNAVAILABLE", "this machine has no GPU")),
  bytesOf: () => Promise.resolve(new Map()),
  keepsEngines: false,
  providersOn: providersOnGpu,
};

/**
 * Refuses, in Triton's words and with what to do, a model that names an accelerator for GPUs and insists on a GPU where there is none.
 * One that says KIND_AUTO, or KIND_GPU alone, runs on the CPU.
 */
export function refuseWithoutGpu({ name, message, instanceGroups }: ModelConfig, { count }: OnnxGpus): void {
  const [accelerator] = message.optimization?.executionAccelerators?.gpuExecutionAccelerator ?? [];
  const group = instanceGroups.find(({ kind }) => kind === "KIND_GPU");
  if (count > 0 || accelerator === undefined || group === undefined) return;
  throw new InferenceError(
    "INVALID_ARG",
    `instance group ${group.name} of model ${name} has kind KIND_GPU but no GPUs are available, and it asks for the Execution ` +
      `Accelerator '${accelerator.name}', which needs one; KIND_AUTO takes the CPU where there is no GPU`,
  );
}

/** The providers with paths that the library can open: those of files of the model's own, and nobody else's. */
export async function resolvePaths(
  providers: readonly ExecutionProvider[],
  { modelDirectory, servedName }: ModelSource,
  { keepsEngines }: Pick<OnnxGpus, "keepsEngines">,
): Promise<readonly ExecutionProvider[]> {
  const resolved = (name: string, value: string) => {
    if (!pathOptions.has(name)) return value;
    if (!keepsEngines)
      throw new InferenceError(
        "UNSUPPORTED",
        `parameter '${name}' of model '${servedName}' is not served here: an engine is code, and would run in a process that tenants share`,
      );
    return ownPath(modelDirectory, { name, value, servedName });
  };
  return await Promise.all(
    providers.map(async ({ name, options }) => ({
      name,
      options: await Promise.all(options.map(async ([key, value]) => [key, await resolved(key, value)] as const)),
    })),
  );
}

/** Below the model's directory and in none of its versions', whose files are the model. Links lead nowhere else. */
async function ownPath(
  directory: string,
  { name, value, servedName }: { name: string; value: string; servedName: string },
): Promise<string> {
  const path = join(directory, value);
  const [first] = path.slice(directory.length + 1).split("/");
  const own = await realpath(directory);
  const real = await existingPart(path);
  if (first === undefined || first === "" || /^\d+$/.test(first) || (real !== own && !real.startsWith(`${own}/`)))
    throw new InferenceError(
      "INVALID_ARG",
      `parameter '${name}' of model '${servedName}' names '${value}', which is no directory of the model's own beside its versions`,
    );
  return path;
}

/** What of a path is there, as it is without links. */
async function existingPart(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return await existingPart(dirname(path));
  }
}
