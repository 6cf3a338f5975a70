import { InferenceError } from "@galatea/base";
import type { ModelConfig } from "./model-config.ts";

/** An instance of a model, and its device. Instances of a group on several GPUs that have the same index share one name, as in Triton. */
export interface PlacedInstance {
  readonly name: string;
  readonly kind: "CPU" | "GPU" | "MODEL";
  /** The GPU's number; 0 for an instance on the CPU. */
  readonly deviceId: number;
}

/** The compute capability that Triton requires of a GPU by default. */
const computeCapabilityMin = "6.000000";

/**
 * Returns the instances of a completed configuration. KIND_GPU means `count` instances on each GPU that the group names, or `count` on
 * the CPU when the machine has no GPU. Throws INVALID_ARG, with Triton's text, for an absent GPU.
 */
export function placedInstances(
  { name: model, instanceGroups }: Pick<ModelConfig, "name" | "instanceGroups">,
  gpuCount: number,
): readonly PlacedInstance[] {
  return instanceGroups.flatMap((group) => {
    const onGpus = group.kind === "KIND_GPU" && gpuCount > 0;
    // A machine without GPUs runs instances for a GPU that other machines may have, and rejects ids that no machine has.
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
