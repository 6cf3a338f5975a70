import type { ScalableTarget, TargetTrackingPolicy } from "./policy.ts";

/** The resource id and dimension of a variant in Application Auto Scaling. */
export const scaledVariantKey = {
  resourceId: "endpoint/e/variant/v",
  dimension: "sagemaker:variant:DesiredInstanceCount",
};

export const policyArn = (name: string) =>
  `arn:aws:autoscaling:r:1:scalingPolicy:1:resource/sagemaker/${scaledVariantKey.resourceId}:policyName/${name}`;
export const policyAlarmArn = (name: string) => `arn:aws:cloudwatch:r:1:alarm:${name}`;

export const invocationsSum = {
  kind: "metric",
  metric: { namespace: "AWS/SageMaker", metricName: "InvocationsPerInstance", dimensions: [] },
  statistic: "Sum",
  unit: null,
  periodMs: 60_000,
} as const;

/** Returns a target with bounds of one and five instances. `more` overrides fields. */
export const scaledVariant = (more: Partial<ScalableTarget> = {}): ScalableTarget => ({
  ...scaledVariantKey,
  arn: "arn:aws:application-autoscaling:r:1:scalable-target/1",
  roleArn: "",
  createdMs: 0,
  minCapacity: 1,
  maxCapacity: 5,
  suspended: { scaleIn: false, scaleOut: false, scheduled: false },
  tags: {},
  ...more,
});

/**
 * Returns a policy with a target of 100 invocations per minute and instance, without cooldowns. `more` overrides
 * fields.
 */
export const trackedInvocations = (more: Partial<TargetTrackingPolicy> = {}): TargetTrackingPolicy => ({
  ...scaledVariantKey,
  name: "p",
  arn: policyArn("p"),
  createdMs: 0,
  type: "TargetTrackingScaling",
  targetValue: 100,
  watched: invocationsSum,
  isZeroWhenMissing: true,
  scaleOutCooldownMs: 0,
  scaleInCooldownMs: 0,
  isScaleInDisabled: false,
  configuration: {},
  highAlarm: "high",
  lowAlarm: "low",
  ...more,
});
