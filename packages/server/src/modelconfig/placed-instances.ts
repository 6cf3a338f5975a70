import { InferenceError } from "@galatea/base";
import type { ModelConfig } from "./model-config.ts";

/** An instance of a model with its device. As in Triton, instances of one group that have the same index on several GPUs share one name. */
export interface PlacedInstance {
  readonly name: string;
  readonly kind: "CPU" | "GPU" | "MODEL";
  /** Number of the GPU; 0 for an instance on the CPU. */
  readonly deviceId: number;
}

/** The minimum compute capability of a GPU, Triton's default. */
const computeCapabilityMin = "6.000000";

/**
 * Returns the instances of a completed configuration. A KIND_GPU group has `count` instances on each GPU that it names or, on a machine
 * without GPUs, `count` instances on the CPU. Throws INVALID_ARG, with Triton's text, for a GPU that is absent.
 */
export function placedInstances(
  { name: model, instanceGroups }: Pick<ModelConfig, "name" | "instanceGroups">,
  gpuCount: number,
): readonly PlacedInstance[] {
  return instanceGroups.flatMap((group) => {
    const onGpus = group.kind === "KIND_GPU" && gpuCount > 0;
    // On a machine without GPUs, only negative GPU ids are rejected: the group runs on the CPU.
    const absent =
      group.kind === "KIND_GPU" ? group.gpus.find((gpu) => gpu < 0 || (onGpus && gpu >= gpuCount)) : undefined;
    if (absent !== undefined) {
      const present = Array.from({ length: gpuCount }, (_, gpu) => gpu).join(", ");
      throw new InferenceError(
        "INVALID_ARG",
        `instance group ${group.name} of model ${model} specifies invalid or unsupported gpu id ${absent}. ` +
          `GPUs with at least the minimum required CUDA compute compatibility of ${computeCapabilityMin} are: ${present}`,
      );
    }
    return Array.from({ length: group.count }, (_, index) => `${group.name}_${index}`).flatMap(
      (name): PlacedInstance[] => {
        if (onGpus) return group.gpus.map((deviceId) => ({ name, kind: "GPU", deviceId }));
        return [{ name, kind: group.kind === "KIND_MODEL" ? "MODEL" : "CPU", deviceId: 0 }];
      },
    );
  });
}
