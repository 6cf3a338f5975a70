import type { PreviousScaling } from "./capacity.ts";
import type { ScalableTarget, ScalingActivity, ScalingPolicy, ScheduledAction } from "./policy.ts";

/** A scalable target with its policies, its last changes and its activities. */
export interface ScalingRecord {
  readonly target: ScalableTarget;
  readonly policies: readonly ScalingPolicy[];
  readonly scheduled: readonly ScheduledAction[];
  /** The correction of the capacity to new bounds, until it has succeeded or failed; null if there is none. */
  readonly correcting: CapacityCorrection | null;
  readonly lastOut: PreviousScaling | null;
  readonly lastIn: PreviousScaling | null;
  /** Oldest first. */
  readonly activities: readonly ScalingActivity[];
}

export interface CapacityCorrection {
  /** The scheduled action that set the bounds; null for a caller. */
  readonly actionName: string | null;
  /** Null until the change of the capacity has started. */
  readonly activityId: string | null;
}

export interface TargetKey {
  readonly resourceId: string;
  readonly dimension: string;
}

/** Returns the key by which the record of a target is kept. */
export function scalingKey({ resourceId, dimension }: TargetKey): string {
  return `${resourceId} ${dimension}`;
}
