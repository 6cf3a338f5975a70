import type { AlarmRecord, Alarms } from "@galatea/hosting/alarms";
import type { ApplicationAutoscalingInputs } from "../../spec/gen/application-autoscaling.ts";
import type { ScalableTarget, ScalingActivity, ScalingPolicy, ScheduledAction } from "@galatea/hosting/scaling";

const namespace = "sagemaker";

type StepConfiguration = ApplicationAutoscalingInputs["StepScalingPolicyConfiguration"];
type TrackingConfiguration = ApplicationAutoscalingInputs["TargetTrackingScalingPolicyConfiguration"];

export function describeScalableTarget(target: ScalableTarget) {
  const { suspended } = target;
  return {
    ServiceNamespace: namespace,
    ResourceId: target.resourceId,
    ScalableDimension: target.dimension,
    MinCapacity: target.minCapacity,
    MaxCapacity: target.maxCapacity,
    RoleARN: target.roleArn,
    CreationTime: new Date(target.createdMs),
    SuspendedState: {
      DynamicScalingInSuspended: suspended.scaleIn,
      DynamicScalingOutSuspended: suspended.scaleOut,
      ScheduledScalingSuspended: suspended.scheduled,
    },
    ScalableTargetARN: target.arn,
  };
}

export function describeScalingPolicy(policy: ScalingPolicy, alarms: AlarmsByAction) {
  const isStep = policy.type === "StepScaling";
  return {
    PolicyARN: policy.arn,
    PolicyName: policy.name,
    ServiceNamespace: namespace,
    ResourceId: policy.resourceId,
    ScalableDimension: policy.dimension,
    PolicyType: policy.type,
    StepScalingPolicyConfiguration: isStep ? (policy.configuration as StepConfiguration) : undefined,
    TargetTrackingScalingPolicyConfiguration: isStep ? undefined : (policy.configuration as TrackingConfiguration),
    Alarms: describePolicyAlarms(policy, alarms),
    CreationTime: new Date(policy.createdMs),
  };
}

/** Alarms by the ARN of the policy that they run. */
export type AlarmsByAction = ReadonlyMap<string, readonly AlarmRecord[]>;

export function alarmsByAction(alarms: Alarms): AlarmsByAction {
  const found = new Map<string, AlarmRecord[]>();
  for (const record of alarms.list()) {
    for (const arn of new Set(Object.values(record.definition.actions).flat())) {
      const known = found.get(arn);
      if (known === undefined) found.set(arn, [record]);
      else known.push(record);
    }
  }
  return found;
}

/** Returns the alarms that run a policy: those that the policy created, or those that users created for it. */
export function describePolicyAlarms({ arn }: ScalingPolicy, alarms: AlarmsByAction) {
  return (alarms.get(arn) ?? []).map(({ definition }) => ({ AlarmName: definition.name, AlarmARN: definition.arn }));
}

export function describeScheduledAction(action: ScheduledAction) {
  const { startMs, endMs, minCapacity, maxCapacity } = action;
  return {
    ScheduledActionName: action.name,
    ScheduledActionARN: action.arn,
    ServiceNamespace: namespace,
    Schedule: action.expression,
    Timezone: action.timezone,
    ResourceId: action.resourceId,
    ScalableDimension: action.dimension,
    StartTime: startMs === null ? undefined : new Date(startMs),
    EndTime: endMs === null ? undefined : new Date(endMs),
    ScalableTargetAction: { MinCapacity: minCapacity ?? undefined, MaxCapacity: maxCapacity ?? undefined },
    CreationTime: new Date(action.createdMs),
  };
}

export function describeScalingActivity(activity: ScalingActivity) {
  const { notScaled } = activity;
  return {
    ActivityId: activity.id,
    ServiceNamespace: namespace,
    ResourceId: activity.resourceId,
    ScalableDimension: activity.dimension,
    Description: activity.description,
    Cause: activity.cause,
    StartTime: new Date(activity.startMs),
    EndTime: activity.endMs === null ? undefined : new Date(activity.endMs),
    StatusCode: activity.status,
    StatusMessage: activity.statusMessage ?? undefined,
    NotScaledReasons:
      notScaled === null
        ? undefined
        : [
            {
              Code: notScaled.code,
              MinCapacity: notScaled.minCapacity,
              MaxCapacity: notScaled.maxCapacity,
              CurrentCapacity: notScaled.currentCapacity,
            },
          ],
  };
}
