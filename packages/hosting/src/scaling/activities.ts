import type { NotScaledCode, ScalableTarget, ScalingActivity } from "./policy.ts";

/** Nouns for capacities, by the suffix of the dimension. */
const counted: readonly (readonly [string, string])[] = [
  [":DesiredCopyCount", "copy count"],
  [":DesiredProvisionedConcurrency", "provisioned concurrency"],
];

/** Returns the activity of a capacity change that starts now. */
export function newScalingActivity(
  { resourceId, dimension }: ScalableTarget,
  { id, to, atMs, cause }: { readonly id: string; readonly to: number; readonly atMs: number; readonly cause: string },
): ScalingActivity {
  const [, what = "instance count"] = counted.find(([end]) => dimension.endsWith(end)) ?? [];
  return {
    id,
    resourceId,
    dimension,
    description: `Setting desired ${what} to ${to}.`,
    cause,
    startMs: atMs,
    endMs: null,
    status: "InProgress",
    statusMessage: null,
    notScaled: null,
  };
}

/** Returns the completed activity. `failure`: the reason of a failure; null for success. */
export function completeActivity(activity: ScalingActivity, failure: string | null, atMs: number): ScalingActivity {
  const done = activity.description.replace(/^Setting/, "set").replace(/\.$/, "");
  return {
    ...activity,
    endMs: atMs,
    status: failure === null ? "Successful" : "Failed",
    statusMessage:
      failure === null
        ? `Successfully ${done}. Change successfully fulfilled by sagemaker.`
        : `Failed to ${done}. Reason: ${failure}`,
  };
}

/** Returns the activity of a scaling request that does not change the capacity. */
export function newNotScaledActivity(
  { resourceId, dimension, minCapacity, maxCapacity }: ScalableTarget,
  requested: {
    readonly id: string;
    readonly atMs: number;
    readonly cause: string;
    readonly because: NotScaledCode;
    readonly desired: number;
  },
): ScalingActivity {
  const { id, atMs, cause, because, desired } = requested;
  return {
    id,
    resourceId,
    dimension,
    description: "Attempting to scale due to alarm triggered",
    cause,
    startMs: atMs,
    endMs: atMs,
    status: "Successful",
    statusMessage: null,
    notScaled: { code: because, minCapacity, maxCapacity, currentCapacity: desired },
  };
}
