import assert from "node:assert/strict";
import { test } from "node:test";
import type { AlarmEvent } from "../alarms/index.ts";
import { sumAlarm, sumMetric } from "../alarms/sum-alarm-fixture.ts";
import { SteppedClock } from "@galatea/base/core/stepped-clock-fixture.ts";
import type { StepPolicy, TargetTrackingPolicy } from "./policy.ts";
import { stepCapacity, trackingCapacity } from "./metric-capacity.ts";

const startMs = Date.UTC(2026, 10, 22);
const facts = { name: "p", arn: "arn", resourceId: "r", dimension: "d", createdMs: 0 };
const policy: StepPolicy = {
  ...facts,
  type: "StepScaling",
  adjustmentType: "ChangeInCapacity",
  steps: [{ lower: 0, upper: null, adjustment: 1 }],
  magnitudeMin: 0,
  cooldownMs: 0,
  aggregation: "Average",
  configuration: {},
};
const alarm = sumAlarm("busy", {
  watched: { ...sumMetric, periodMs: 10_000 },
  threshold: 100,
  evaluationPeriods: 2,
  datapointsToAlarm: 2,
});
const state = {
  nowMs: startMs,
  desired: 1,
  minCapacity: 1,
  maxCapacity: 5,
  suspended: { scaleIn: false, scaleOut: false, scheduled: false },
  lastOut: null,
  lastIn: null,
};

test("stepCapacity reads the 10 s periods in which the alarm went into ALARM, even in the middle of a minute", async () => {
  const ranges: { readonly startMs: number; readonly endMs: number }[] = [];
  const reading = {
    clock: new SteppedClock(),
    sinceMs: 0,
    readValues: (_: unknown, range: { readonly startMs: number; readonly endMs: number }) => {
      ranges.push(range);
      return Promise.resolve(new Map([[range.startMs, range.endMs > startMs ? 200 : 1]]));
    },
  };
  const status = { state: "ALARM", reason: "", reasonData: null, updatedMs: 0, transitionedMs: 0 } as const;
  const event: AlarmEvent = { definition: alarm, status, before: "OK", atMs: startMs + 40_500 };
  assert.equal(await stepCapacity(reading, policy, event, state), 2);
  assert.deepEqual(ranges, [{ startMs: startMs + 20_000, endMs: startMs + 40_000 }]);
});

test("trackingCapacity returns null for an infinite metric", async () => {
  const clock = new SteppedClock();
  const tracking: TargetTrackingPolicy = {
    ...facts,
    type: "TargetTrackingScaling",
    targetValue: 1,
    watched: alarm.watched,
    isZeroWhenMissing: false,
    scaleOutCooldownMs: 0,
    scaleInCooldownMs: 0,
    isScaleInDisabled: false,
    configuration: {},
    highAlarm: alarm.name,
    lowAlarm: null,
  };
  const reading = {
    clock,
    sinceMs: 0,
    readValues: (_: unknown, range: { readonly endMs: number }) =>
      Promise.resolve(new Map([[range.endMs - 10_000, Infinity]])),
  };
  const status = { state: "ALARM", reason: "", reasonData: null, updatedMs: 0, transitionedMs: 0 } as const;
  const event: AlarmEvent = { definition: alarm, status, before: "OK", atMs: clock.epochMs() };
  // With no running instance, 0 times infinity would be NaN.
  const capacity = { desired: 1, running: 0, isMoving: false };
  const alarmed = { policy: tracking, event, capacity, steadySinceMs: 0 };
  assert.equal(await trackingCapacity(reading, [tracking], alarmed), null);
});
