import { InferenceError } from "@galatea/base";
import type { ModelConfig } from "./model-config.ts";

/** An instance of a model, and where it runs. Those of one place in a group on several GPUs have one name, as in Triton. */
export interface PlacedInstance {
  readonly name: string;
  readonly kind: "CPU" | "GPU" | "MODEL";
  /** The GPU's number; 0 where it runs on none. */
  readonly deviceId: number;
}

/** The compute capability that Triton asks of a GPU unless it is told another. */
const computeCapabilityMin = "6.000000";

/**
 * The instances of a completed configuration. KIND_GPU is `count` instances on each GPU that the group names; where the machine has no
 * GPU, `count` on the CPU. Throws INVALID_ARG, in Triton's words, for a GPU that is not there.
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
