import assert from "node:assert/strict";
import { test } from "node:test";
import type { CapacitySize, DeploymentConfig, TrafficRouting } from "../definitions/index.ts";
import { deploymentConfigError } from "./check-deployment.ts";

const half: CapacitySize = { Type: "CAPACITY_PERCENT", Value: 50 };
const traffic = (routing: Omit<TrafficRouting, "WaitIntervalInSeconds">): DeploymentConfig => ({
  BlueGreenUpdatePolicy: { TrafficRoutingConfiguration: { WaitIntervalInSeconds: 0, ...routing } },
});
const rolling = (MaximumBatchSize: CapacitySize, RollbackMaximumBatchSize = half): DeploymentConfig => ({
  RollingUpdatePolicy: { MaximumBatchSize, WaitIntervalInSeconds: 0, RollbackMaximumBatchSize },
});

test("deploymentConfigError accepts valid deployments of two instances and explains why others are invalid", () => {
  for (const [config, text] of [
    [{}, null],
    [traffic({ Type: "ALL_AT_ONCE" }), null],
    [traffic({ Type: "CANARY", CanarySize: { Type: "INSTANCE_COUNT", Value: 1 } }), null],
    [traffic({ Type: "LINEAR", LinearStepSize: half }), null],
    [rolling(half), null],
    [
      traffic({ Type: "CANARY" }),
      "CanarySize must be set for traffic routing of type CANARY, and for no other type (found type CANARY).",
    ],
    [
      traffic({ Type: "ALL_AT_ONCE", LinearStepSize: half }),
      "LinearStepSize must be set for traffic routing of type LINEAR, and for no other type (found type ALL_AT_ONCE).",
    ],
    [
      traffic({ Type: "CANARY", CanarySize: { Type: "INSTANCE_COUNT", Value: 2 } }),
      "CanarySize has to be between 0 and 50 percent of the endpoint's 2 instances; it is 100 percent.",
    ],
    [
      traffic({ Type: "LINEAR", LinearStepSize: { ...half, Value: 9 } }),
      "LinearStepSize has to be between 10 and 50 percent of the endpoint's 2 instances; it is 9 percent.",
    ],
    [
      rolling({ ...half, Value: 4 }),
      "MaximumBatchSize has to be between 5 and 50 percent of the endpoint's 2 instances; it is 4 percent.",
    ],
    [
      rolling(half, { Type: "INSTANCE_COUNT", Value: 3 }),
      "RollbackMaximumBatchSize has to be between 5 and 100 percent of the endpoint's 2 instances; it is 150 percent.",
    ],
    [
      { ...traffic({ Type: "ALL_AT_ONCE" }), ...rolling(half) },
      "DeploymentConfig can have either BlueGreenUpdatePolicy or RollingUpdatePolicy, not both.",
    ],
  ] as const) {
    assert.equal(deploymentConfigError(config, 2), text);
  }
});
