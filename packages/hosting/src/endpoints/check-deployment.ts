import type { CapacitySize, DeploymentConfig } from "../definitions/index.ts";
import { shareOfInstances } from "./change-steps.ts";

/** The allowed range of each CapacitySize, in percent of the instances. */
const bounds = {
  CanarySize: { leastPercent: 0, mostPercent: 50 },
  LinearStepSize: { leastPercent: 10, mostPercent: 50 },
  MaximumBatchSize: { leastPercent: 5, mostPercent: 50 },
  RollbackMaximumBatchSize: { leastPercent: 5, mostPercent: 100 },
} as const;

/**
 * Returns the error text for a DeploymentConfig that is invalid for an endpoint with `instanceCount` instances; null if
 * it is valid.
 */
export function deploymentConfigError(config: DeploymentConfig, instanceCount: number): string | null {
  const { BlueGreenUpdatePolicy: blueGreen, RollingUpdatePolicy: rolling } = config;
  if (blueGreen !== undefined && rolling !== undefined) {
    return "DeploymentConfig can have either BlueGreenUpdatePolicy or RollingUpdatePolicy, not both.";
  }
  if (rolling !== undefined) {
    return (
      check("MaximumBatchSize", rolling.MaximumBatchSize, instanceCount) ??
      (rolling.RollbackMaximumBatchSize === undefined
        ? null
        : check("RollbackMaximumBatchSize", rolling.RollbackMaximumBatchSize, instanceCount))
    );
  }
  if (blueGreen === undefined) return null;
  const { Type: type, CanarySize, LinearStepSize } = blueGreen.TrafficRoutingConfiguration;
  if ((CanarySize !== undefined) !== (type === "CANARY")) {
    return `CanarySize must be set for traffic routing of type CANARY, and for no other type (found type ${type}).`;
  }
  if ((LinearStepSize !== undefined) !== (type === "LINEAR")) {
    return `LinearStepSize must be set for traffic routing of type LINEAR, and for no other type (found type ${type}).`;
  }
  if (CanarySize !== undefined) return check("CanarySize", CanarySize, instanceCount);
  return LinearStepSize === undefined ? null : check("LinearStepSize", LinearStepSize, instanceCount);
}

/**
 * Returns the error text for a DeploymentConfig that an endpoint with a serverless variant does not support; null if it
 * is supported. A serverless variant has no instances that could be replaced in batches.
 */
export function serverlessDeploymentError({
  RollingUpdatePolicy: rolling,
  BlueGreenUpdatePolicy: blueGreen,
}: DeploymentConfig): string | null {
  const { Type: type = "ALL_AT_ONCE" } = blueGreen?.TrafficRoutingConfiguration ?? {};
  if (rolling === undefined && type === "ALL_AT_ONCE") return null;
  const what = rolling === undefined ? `the traffic routing ${type}` : "RollingUpdatePolicy";
  return `Endpoints with serverless variants are updated all at once; ${what} counts instances, which they do not have.`;
}

function check(member: keyof typeof bounds, size: CapacitySize, instanceCount: number): string | null {
  const { leastPercent, mostPercent } = bounds[member];
  const percent = 100 * shareOfInstances(size, instanceCount);
  if (percent >= leastPercent && percent <= mostPercent) return null;
  return (
    `${member} has to be between ${leastPercent} and ${mostPercent} percent of the endpoint's ${instanceCount} instances; ` +
    `it is ${Math.round(percent)} percent.`
  );
}
