import type { EvaluatedMetric } from "@galatea/hosting/alarms";
import { validationError } from "@galatea/hosting";
import { stepAdjustmentsError, type StepPolicy, type TargetTrackingPolicy } from "@galatea/hosting/scaling";
import type { ApplicationAutoscalingInputs } from "../../spec/gen/application-autoscaling.ts";
import type { ScaledTarget } from "./resources.ts";

type PolicyInput = ApplicationAutoscalingInputs["PutScalingPolicyRequest"];
type TrackingInput = ApplicationAutoscalingInputs["TargetTrackingScalingPolicyConfiguration"];
type CustomizedInput = ApplicationAutoscalingInputs["CustomizedMetricSpecification"];

/** Information that a policy needs in addition to its configuration. */
export interface PolicyContext {
  readonly arn: string;
  readonly createdMs: number;
  readonly tracked: ScaledTarget["tracked"];
  /** Returns a unique id, which becomes part of an alarm's name. */
  readonly newId: () => string;
  readonly before: TargetTrackingPolicy | null;
}

const periodMs = 60_000;
const cooldownSecondsDefault = 300;

/** Parses a target tracking policy. Throws AwsError for a metric that cannot be tracked. */
export function parseTrackingPolicy(
  input: PolicyInput,
  config: TrackingInput,
  facing: PolicyContext,
): TargetTrackingPolicy {
  const { TargetValue: targetValue, PredefinedMetricSpecification: predefined } = config;
  const { CustomizedMetricSpecification: customized } = config;
  if (!(targetValue > 0)) throw validationError("TargetValue must be greater than 0.");
  if (targetValue === Infinity) throw validationError("TargetValue must be a finite number.");
  if ((predefined === undefined) === (customized === undefined)) {
    throw validationError(
      "Exactly one of PredefinedMetricSpecification and CustomizedMetricSpecification must be specified.",
    );
  }
  const isScaleInDisabled = config.DisableScaleIn ?? false;
  const { before, newId } = facing;
  const alarmName = (which: string) => `TargetTracking-${input.ResourceId}-${which}-${newId()}`;
  return {
    type: "TargetTrackingScaling",
    ...factsOf(input, facing),
    targetValue,
    watched:
      customized === undefined
        ? predefinedMetric(predefined?.PredefinedMetricType ?? "", input, facing)
        : customizedMetric(customized),
    isZeroWhenMissing: predefined !== undefined,
    scaleOutCooldownMs: (config.ScaleOutCooldown ?? cooldownSecondsDefault) * 1000,
    scaleInCooldownMs: (config.ScaleInCooldown ?? cooldownSecondsDefault) * 1000,
    isScaleInDisabled,
    configuration: config,
    highAlarm: before?.highAlarm ?? alarmName("AlarmHigh"),
    lowAlarm: isScaleInDisabled ? null : (before?.lowAlarm ?? alarmName("AlarmLow")),
  };
}

/** Parses a step scaling policy. Throws AwsError for steps with gaps or overlaps. */
export function parseStepPolicy(
  input: PolicyInput,
  config: ApplicationAutoscalingInputs["StepScalingPolicyConfiguration"],
  facing: PolicyContext,
): StepPolicy {
  if (config.AdjustmentType === undefined) throw validationError("AdjustmentType is required for StepScaling.");
  if (config.MinAdjustmentMagnitude !== undefined && config.AdjustmentType !== "PercentChangeInCapacity") {
    throw validationError("MinAdjustmentMagnitude is only for PercentChangeInCapacity.");
  }
  const steps = (config.StepAdjustments ?? []).map((step) => ({
    lower: step.MetricIntervalLowerBound ?? null,
    upper: step.MetricIntervalUpperBound ?? null,
    adjustment: step.ScalingAdjustment,
  }));
  const fault = stepAdjustmentsError(steps);
  if (fault !== null) throw validationError(fault);
  if (config.AdjustmentType === "ExactCapacity" && steps.some(({ adjustment }) => adjustment < 0)) {
    throw validationError("ScalingAdjustment of ExactCapacity must not be negative.");
  }
  return {
    type: "StepScaling",
    ...factsOf(input, facing),
    adjustmentType: config.AdjustmentType,
    steps,
    magnitudeMin: config.MinAdjustmentMagnitude ?? 0,
    cooldownMs: (config.Cooldown ?? cooldownSecondsDefault) * 1000,
    aggregation: config.MetricAggregationType ?? "Average",
    configuration: config,
  };
}

function factsOf(input: PolicyInput, { arn, createdMs }: PolicyContext) {
  return {
    name: input.PolicyName,
    arn,
    resourceId: input.ResourceId,
    dimension: input.ScalableDimension,
    createdMs,
  };
}

function predefinedMetric(
  type: string,
  { ScalableDimension: dimension }: PolicyInput,
  { tracked }: PolicyContext,
): EvaluatedMetric {
  const { predefined, dimensions } = tracked;
  const found = Object.hasOwn(predefined, type) ? predefined[type] : undefined;
  if (found === undefined) {
    const known = Object.keys(predefined);
    const supported = `${known.join(" and ")} ${known.length === 1 ? "is" : "are"}`;
    throw validationError(
      `The predefined metric ${type} is not supported by this platform yet for ${dimension}; ${supported}.`,
    );
  }
  const metric = { namespace: "AWS/SageMaker", metricName: found.metricName, dimensions };
  return { kind: "metric", metric, statistic: found.statistic, unit: null, periodMs: found.periodMs };
}

function customizedMetric(input: CustomizedInput): EvaluatedMetric {
  if (input.Metrics !== undefined) return mathMetric(input.Metrics);
  const { Namespace: namespace, MetricName: metricName, Statistic: statistic } = input;
  if (namespace === undefined || metricName === undefined || statistic === undefined) {
    throw validationError("CustomizedMetricSpecification takes MetricName, Namespace and Statistic, or Metrics.");
  }
  const dimensions = (input.Dimensions ?? []).map(({ Name, Value }) => ({ name: Name, value: Value }));
  const metric = { namespace, metricName, dimensions };
  return { kind: "metric", metric, statistic, unit: input.Unit ?? null, periodMs };
}

/** Converts Metrics to queries of GetMetricData, each with a period of one minute. */
function mathMetric(metrics: NonNullable<CustomizedInput["Metrics"]>): EvaluatedMetric {
  if (metrics.filter(({ ReturnData }) => ReturnData !== false).length !== 1) {
    throw validationError("Exactly one element of Metrics must have ReturnData true.");
  }
  const queries = metrics.map(({ MetricStat: stat, ...query }) => {
    if ((stat === undefined) === (query.Expression === undefined)) {
      throw validationError(`Exactly one of MetricStat and Expression must be specified for the metric ${query.Id}.`);
    }
    return stat === undefined ? query : { ...query, MetricStat: { ...stat, Period: periodMs / 1000 } };
  });
  return { kind: "queries", queries, periodMs };
}
