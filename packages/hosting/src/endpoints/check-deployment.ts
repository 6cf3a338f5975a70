import type { CapacitySize, DeploymentConfig } from "../definitions/index.ts";
import { shareOf } from "./change-steps.ts";

/** The allowed share of a fleet for each size, in percent. */
const bounds = {
  CanarySize: { leastPercent: 0, mostPercent: 50 },
  LinearStepSize: { leastPercent: 10, mostPercent: 50 },
  MaximumBatchSize: { leastPercent: 5, mostPercent: 50 },
  RollbackMaximumBatchSize: { leastPercent: 5, mostPercent: 100 },
} as const;

/**
 * Returns the reason that an endpoint with `instanceCount` instances cannot be updated with a configuration; null if it
 * can.
 */
export function checkDeployment(config: DeploymentConfig, instanceCount: number): string | null {
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
    return `CanarySize is for the traffic routing CANARY, which requires it; the type is ${type}.`;
  }
  if ((LinearStepSize !== undefined) !== (type === "LINEAR")) {
    return `LinearStepSize is for the traffic routing LINEAR, which requires it; the type is ${type}.`;
  }
  if (CanarySize !== undefined) return check("CanarySize", CanarySize, instanceCount);
  return LinearStepSize === undefined ? null : check("LinearStepSize", LinearStepSize, instanceCount);
}

/**
 * Returns the reason that an endpoint with a serverless variant, which has no instances to replace in batches, cannot
 * be updated with a configuration; null if it can.
 */
export function serverlessDeploymentRefusal({
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
  const percent = 100 * shareOf(size, instanceCount);
  if (percent >= leastPercent && percent <= mostPercent) return null;
  return (
    `${member} has to be between ${leastPercent} and ${mostPercent} percent of the endpoint's ${instanceCount} instances; ` +
    `it is ${Math.round(percent)} percent.`
  );
}
