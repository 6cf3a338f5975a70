/** An endpoint with a queue that has no instance while nothing waits: alarms on the queue's own metrics bring one, and take it away. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MetricAlarm } from "@galatea/hosting/alarms";
import { silentLogger, systemClock, type Clock } from "@galatea/base";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { InMemoryMetricStore } from "@galatea/base/metrics";
import { DocumentMemory, MemoryDocuments } from "@galatea/hosting/records/contracts";
import type { StepPolicy, TargetTrackingPolicy } from "@galatea/hosting/scaling";
import { AsyncFixture } from "../../hosting/test/async-fixture.ts";
import { owner } from "../../hosting/test/hosting-fixture.ts";
import { openAlarms } from "../src/app/platform/platform-scaling.ts";

/** A clock on which a minute lasts a quarter of a second. */
const beganMs = systemClock.epochMs();
const fast: Clock = {
  epochMs: () => beganMs + (systemClock.epochMs() - beganMs) * 240,
  monotonicNs: () => systemClock.monotonicNs() * 240,
  timer: (delayMs, fire) => systemClock.timer(delayMs / 240, fire),
};

const resource = { resourceId: "endpoint/idle/variant/v", dimension: "sagemaker:variant:DesiredInstanceCount" };
const watched = (metricName: string, statistic: string) => ({
  kind: "metric" as const,
  metric: { namespace: "AWS/SageMaker", metricName, dimensions: [{ name: "EndpointName", value: "idle" }] },
  statistic,
  unit: null,
  periodMs: 60_000,
});
const policy = (name: string) => ({
  ...resource,
  name,
  arn: `arn:policy/${name}`,
  createdMs: beganMs,
  configuration: {},
});

const wakes: StepPolicy = {
  ...policy("wakes"),
  type: "StepScaling",
  adjustmentType: "ChangeInCapacity",
  steps: [{ lower: 0, upper: null, adjustment: 1 }],
  magnitudeMin: 0,
  cooldownMs: 60_000,
  aggregation: "Average",
};
const follows: TargetTrackingPolicy = {
  ...policy("follows"),
  type: "TargetTrackingScaling",
  targetValue: 2,
  watched: watched("ApproximateBacklogSizePerInstance", "Average"),
  isZeroWhenMissing: false,
  scaleOutCooldownMs: 60_000,
  scaleInCooldownMs: 60_000,
  isScaleInDisabled: false,
  highAlarm: "high",
  lowAlarm: "low",
};
const waits: MetricAlarm = {
  kind: "metric",
  name: "waits",
  arn: "arn:alarm/waits",
  description: null,
  actionsEnabled: true,
  actions: { OK: [], ALARM: [wakes.arn], INSUFFICIENT_DATA: [] },
  configuredMs: beganMs,
  tags: [],
  watched: watched("HasBacklogWithoutCapacity", "Average"),
  threshold: 1,
  comparison: "GreaterThanOrEqualToThreshold",
  evaluationPeriods: 1,
  datapointsToAlarm: 1,
  hasDatapointsToAlarm: false,
  missing: "missing",
};

test("a request to an endpoint without instances scales it out, and it scales in when the queue is empty", async () => {
  const series = new InMemoryMetricStore({ clock: fast, seriesMax: 1000, bytesMax: 1e8 });
  await using opening = new AsyncDisposableStack();
  const bench = opening.use(await AsyncFixture.open({ series, limits: { sampleMs: 50 } }));
  const documents = new MemoryDocuments(new DocumentMemory());
  const { alarms, openScaling } = await openAlarms(opening, { documents, series, clock: fast, logger: silentLogger });
  const { scaling, scalable } = await openScaling(bench.hosting, owner);
  await bench.deploy("idle");
  assert.equal((await scalable.capacity(resource))?.least, 0);
  await scaling.register({
    ...resource,
    arn: "arn:target",
    roleArn: "arn:role",
    createdMs: beganMs,
    minCapacity: 0,
    maxCapacity: 2,
    suspended: { scaleIn: false, scaleOut: false, scheduled: false },
    tags: {},
  });
  await scaling.putPolicy(follows, (name) => `arn:${name}`);
  await scaling.putPolicy(wakes, (name) => `arn:${name}`);
  await alarms.put(waits);
  const running = async () => (await scalable.capacity(resource))?.running;
  await eventually(async () => (await running()) === 0);
  const ticket = await bench.call("idle", "fine");
  assert.equal((await bench.result(ticket)).ok, true);
  await eventually(async () => (await running()) === 0);
  const causes = scaling.find(resource)?.activities.filter(({ notScaled }) => notScaled === null);
  const lines = causes?.map(({ description, cause }) => `${description} ${cause}`) ?? [];
  assert.ok(
    lines.some((text) => text.includes("to 1.") && text.includes("monitor alarm waits")),
    lines.join("\n"),
  );
});
