import type { PreviousScaling } from "./capacity.ts";
import type { ScalableTarget, ScalingActivity, ScalingPolicy, ScheduledAction } from "./policy.ts";

/** A scalable target with its policies, last capacity changes and activities. */
export interface ScalingRecord {
  readonly target: ScalableTarget;
  readonly policies: readonly ScalingPolicy[];
  readonly scheduled: readonly ScheduledAction[];
  /** A pending correction of the capacity to new bounds; null if there is none. */
  readonly correcting: CapacityCorrection | null;
  readonly lastOut: PreviousScaling | null;
  readonly lastIn: PreviousScaling | null;
  /** Oldest first. */
  readonly activities: readonly ScalingActivity[];
}

export interface CapacityCorrection {
  /** The scheduled action that set the bounds; null if a caller set them. */
  readonly actionName: string | null;
  /** Id of the activity; null until the change of the capacity has started. */
  readonly activityId: string | null;
}

export interface TargetKey {
  readonly resourceId: string;
  readonly dimension: string;
}

/** Returns the key of a target's record. */
export function scalingKey({ resourceId, dimension }: TargetKey): string {
  return `${resourceId} ${dimension}`;
}
