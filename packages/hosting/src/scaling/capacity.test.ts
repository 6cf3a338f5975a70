import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import {
  decideCapacity,
  combinedCapacity,
  stepScalingCapacity,
  stepAdjustmentsError,
  targetTrackingCapacity,
  type CapacityState,
} from "./capacity.ts";
import type { AdjustmentType, StepAdjustment, StepPolicy } from "./policy.ts";

const running: CapacityState = {
  nowMs: 1_000_000,
  desired: 2,
  minCapacity: 1,
  maxCapacity: 10,
  suspended: { scaleIn: false, scaleOut: false, scheduled: false },
  lastOut: null,
  lastIn: null,
};
const policy = (adjustmentType: AdjustmentType, steps: readonly StepAdjustment[], magnitudeMin = 0): StepPolicy => ({
  type: "StepScaling",
  name: "p",
  arn: "arn",
  resourceId: "endpoint/e/variant/v",
  dimension: "sagemaker:variant:DesiredInstanceCount",
  createdMs: 0,
  adjustmentType,
  steps,
  magnitudeMin,
  cooldownMs: 300_000,
  aggregation: "Average",
  configuration: {},
});

test("targetTrackingCapacity returns the fewest instances that keep the metric at or below its target", () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 1e6, noNaN: true }),
      fc.double({ min: 0.1, max: 1e4, noNaN: true }),
      fc.integer({ min: 1, max: 500 }),
      (value, target, count) => {
        const expected = targetTrackingCapacity(value, target, count);
        const load = value * count;
        assert.ok(load <= expected * target * (1 + 1e-6) + target * 1e-6, "it is enough");
        assert.ok(expected === 0 || load > (expected - 1) * target * (1 - 1e-6) - target * 1e-6, "one fewer is not");
      },
    ),
  );
  assert.deepEqual([targetTrackingCapacity(0.1 + 0.2, 0.3, 10), targetTrackingCapacity(0, 5, 3)], [10, 0]);
});

test("combinedCapacity returns the largest capacity of all policies, and no scale-in while one has no data", () => {
  assert.deepEqual(
    [
      combinedCapacity([3, 5], 4),
      combinedCapacity([3, null], 2),
      combinedCapacity([3, null], 4),
      combinedCapacity([1, 2], 4),
    ],
    [5, 3, null, 2],
  );
});

test("property: a decision stays within the bounds, and a decision to do nothing has a reason", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -5, max: 50 }),
      fc.integer({ min: 0, max: 10 }),
      fc.nat(10),
      (expected, min, more) => {
        const state = { ...running, minCapacity: min, maxCapacity: min + more, desired: min + Math.floor(more / 2) };
        const decision = decideCapacity(expected, state);
        if (decision.do === "scale") {
          assert.ok(decision.to >= min && decision.to <= min + more && decision.to !== state.desired);
          assert.equal(decision.direction, decision.to > state.desired ? "out" : "in");
        } else assert.equal(Math.min(min + more, Math.max(min, expected)), state.desired);
      },
    ),
  );
  const because = (expected: number, desired: number) => {
    const decision = decideCapacity(expected, { ...running, desired });
    return decision.do === "nothing" ? decision.because : decision.to;
  };
  assert.deepEqual(
    [because(20, 10), because(0, 1), because(3, 3)],
    ["AlreadyAtMaxCapacity", "AlreadyAtMinCapacity", "AlreadyAtDesiredCapacity"],
  );
});

test("a cooldown allows larger changes in its direction and delays scale-in, and a suspension blocks its direction", () => {
  const before = { atMs: running.nowMs - 1000, from: 2, to: 4, cooldownMs: 60_000 };
  const at = (state: Partial<CapacityState>, expected: number) => {
    const decision = decideCapacity(expected, { ...running, desired: 4, ...state });
    return decision.do === "scale" ? decision.to : decision.because;
  };
  assert.deepEqual(
    [at({ lastOut: before }, 6), at({ lastOut: before }, 3), at({ lastIn: before }, 6)],
    [6, "cooldown", 6],
  );
  assert.deepEqual([at({ lastIn: before }, 3), at({ lastIn: { ...before, cooldownMs: 1000 } }, 3)], ["cooldown", 3]);
  const suspended = { scaleIn: true, scaleOut: false, scheduled: false };
  assert.deepEqual([at({ suspended }, 3), at({ suspended }, 5)], ["suspended", 5]);
});

test("the step is chosen by the distance of the metric from the threshold", () => {
  const out = [
    { lower: 0, upper: 10, adjustment: 1 },
    { lower: 10, upper: null, adjustment: 3 },
  ];
  const into = [
    { lower: -10, upper: 0, adjustment: -1 },
    { lower: null, upper: -10, adjustment: -2 },
  ];
  const change = (steps: readonly StepAdjustment[], distance: number) =>
    stepScalingCapacity(policy("ChangeInCapacity", steps), distance, { ...running, desired: 5 });
  assert.deepEqual(
    [0, 9.9, 10, 500, -1].map((distance) => change(out, distance)),
    [6, 6, 8, 8, null],
  );
  assert.deepEqual(
    [-0.1, -9.9, -10, -500, 1].map((distance) => change(into, distance)),
    [4, 4, 3, 3, null],
  );
});

test("percentages are rounded as by Application Auto Scaling, and instances added during the cooldown count towards the step", () => {
  const percent = (adjustment: number, desired: number, magnitude = 0) =>
    stepScalingCapacity(policy("PercentChangeInCapacity", [{ lower: null, upper: null, adjustment }], magnitude), 1, {
      ...running,
      desired,
    });
  assert.deepEqual(
    [percent(50, 10), percent(10, 4), percent(25, 5), percent(-50, 3), percent(10, 4, 2)],
    [15, 5, 6, 2, 6],
  );
  const steps = [{ lower: 0, upper: null, adjustment: 2 }];
  const lastOut = { atMs: running.nowMs - 1000, from: 2, to: 4, cooldownMs: 60_000 };
  assert.equal(stepScalingCapacity(policy("ChangeInCapacity", steps), 1, { ...running, desired: 4, lastOut }), 4);
  assert.equal(stepScalingCapacity(policy("ExactCapacity", [{ lower: 0, upper: null, adjustment: 7 }]), 1, running), 7);
});

test("stepAdjustmentsError reports gaps, overlaps and several unbounded ends", () => {
  const fault = (...bounds: readonly (readonly [number | null, number | null])[]) =>
    stepAdjustmentsError(bounds.map(([lower, upper]) => ({ lower, upper, adjustment: 1 })));
  assert.equal(fault([0, 10], [10, null]), null);
  assert.equal(fault([null, -5], [-5, 0]), null);
  assert.equal(fault([null, null]), null);
  assert.match(fault() ?? "", /At least one/);
  assert.match(fault([0, 10], [11, null]) ?? "", /gap/);
  assert.match(fault([0, 10], [9, null]) ?? "", /overlap/);
  assert.match(fault([0, null], [5, null]) ?? "", /lack a lower bound/);
  assert.match(fault([10, 10], [10, null]) ?? "", /less than/);
});
