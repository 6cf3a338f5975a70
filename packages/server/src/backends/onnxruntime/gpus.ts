import { realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { InferenceError } from "@galatea/base";
import type { ModelConfig } from "../../modelconfig/index.ts";
import type { ExecutionProvider } from "../../native/index.ts";
import type { ModelSource } from "../backend.ts";
import type { DeviceBytes } from "../device-bytes.ts";
import { pathOptions, providersOnGpu } from "./provider-options.ts";

/** A build of ONNX Runtime with execution providers for GPUs. */
export interface GpuLibrary {
  /** Path of libonnxruntime.so.*. The providers' libraries are in the same directory. */
  readonly libraryPath: string;
  /** Environment variables of the processes that open the library. LD_LIBRARY_PATH names the directories of its dependencies. */
  readonly processEnv: Readonly<Record<string, string>>;
}

/** The machine's GPUs and the library that uses them. */
export interface OnnxGpus {
  /** Number of GPUs on which models may be placed. */
  readonly count: number;
  /** Returns the library. Throws UNAVAILABLE with a remedy when none is installed. */
  readonly findLibrary: () => Promise<GpuLibrary>;
  /** Returns the GPU memory that these processes use. */
  readonly bytesOf: (pids: readonly number[]) => Promise<DeviceBytes>;
  /**
   * True if models may keep TensorRT engines in their own files. False if tenants share a process, because an engine is code: one from a
   * tenant's archive could access the tensors of other tenants.
   */
  readonly keepsEngines: boolean;
  /** Returns the execution providers of a model on a GPU, in order of preference. */
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
 * Rejects a model that requires a GPU accelerator on a machine without GPUs, with Triton's text and a remedy. A model with KIND_AUTO, or
 * with KIND_GPU and no accelerator, runs on the CPU instead.
 */
export function rejectMissingGpu({ name, message, instanceGroups }: ModelConfig, { count }: OnnxGpus): void {
  const [accelerator] = message.optimization?.executionAccelerators?.gpuExecutionAccelerator ?? [];
  const group = instanceGroups.find(({ kind }) => kind === "KIND_GPU");
  if (count > 0 || accelerator === undefined || group === undefined) return;
  throw new InferenceError(
    "INVALID_ARG",
    `instance group ${group.name} of model ${name} has kind KIND_GPU but no GPUs are available, and it requests the Execution ` +
      `Accelerator '${accelerator.name}', which needs one; KIND_AUTO takes the CPU where there is no GPU`,
  );
}

/** Returns the providers with absolute paths. Throws if a path does not name a file of the model itself. */
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

/**
 * Resolves a path inside the model's directory. Rejects a path in a version directory, because those files are the model, and a link to a
 * location outside the model's directory.
 */
async function ownPath(
  directory: string,
  { name, value, servedName }: { name: string; value: string; servedName: string },
): Promise<string> {
  const path = join(directory, value);
  const [first] = path.slice(directory.length + 1).split("/");
  const own = await realpath(directory);
  const real = await existingAncestor(path);
  if (first === undefined || first === "" || /^\d+$/.test(first) || (real !== own && !real.startsWith(`${own}/`)))
    throw new InferenceError(
      "INVALID_ARG",
      `parameter '${name}' of model '${servedName}' names '${value}', which is not a directory of the model, next to its versions`,
    );
  return path;
}

/** Returns the path with the symbolic links in its existing part resolved. */
async function existingAncestor(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return await existingAncestor(dirname(path));
  }
}
