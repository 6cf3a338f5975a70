import assert from "node:assert/strict";
import { test } from "node:test";
import { delay, silentLogger, systemClock, TaskGroup, type Clock } from "@galatea/base";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { InMemoryMetricStore } from "@galatea/base/metrics";
import { DocumentMemory, MemoryDocuments } from "@galatea/hosting/records/contracts";
import type { TargetTrackingPolicy } from "@galatea/hosting/scaling";
import { owner } from "../../hosting/test/hosting-fixture.ts";
import { openAlarms } from "../src/app/platform/platform-scaling.ts";
import { TrafficFixture } from "../../hosting/test/traffic-fixture.ts";

/** A clock on which a minute lasts half a second. */
const speed = 120;
const beganMs = systemClock.epochMs();
const fast: Clock = {
  epochMs: () => beganMs + (systemClock.epochMs() - beganMs) * speed,
  monotonicNs: () => systemClock.monotonicNs() * speed,
  timer: (delayMs, fire) => systemClock.timer(delayMs / speed, fire),
};

const resource = { resourceId: "endpoint/moving/variant/a", dimension: "sagemaker:variant:DesiredInstanceCount" };
const invocations: TargetTrackingPolicy = {
  type: "TargetTrackingScaling",
  ...resource,
  name: "track",
  arn: "arn:aws:autoscaling:us-east-1:000000000000:scalingPolicy:x:resource/sagemaker/endpoint/moving/variant/a:policyName/track",
  createdMs: beganMs,
  targetValue: 1,
  watched: {
    kind: "metric",
    metric: {
      namespace: "AWS/SageMaker",
      metricName: "InvocationsPerInstance",
      dimensions: [
        { name: "EndpointName", value: "moving" },
        { name: "VariantName", value: "a" },
      ],
    },
    statistic: "Sum",
    unit: null,
    periodMs: 60_000,
  },
  isZeroWhenMissing: true,
  scaleOutCooldownMs: 60_000,
  scaleInCooldownMs: 60_000,
  isScaleInDisabled: false,
  configuration: {},
  highAlarm: "high",
  lowAlarm: "low",
};

test("under load an endpoint scales from one instance to five, and back to one afterwards, without failed requests", async () => {
  const series = new InMemoryMetricStore({ clock: fast, seriesMax: 1000, bytesMax: 1e8 });
  await using opening = new AsyncDisposableStack();
  const bench = opening.use(await TrafficFixture.open(new DocumentMemory(), series));
  const documents = new MemoryDocuments(new DocumentMemory());
  const { openScaling } = await openAlarms(opening, { documents, series, clock: fast, logger: silentLogger });
  const { scaling } = await openScaling(bench.hosting, owner);
  await bench.deploy("moving", [{ name: "a" }]);
  await scaling.register({
    ...resource,
    arn: "arn:target",
    roleArn: "arn:role",
    createdMs: beganMs,
    minCapacity: 1,
    maxCapacity: 5,
    suspended: { scaleIn: false, scaleOut: false, scheduled: false },
    tags: {},
  });
  await scaling.putPolicy(invocations, (name) => `arn:${name}`);

  let pauseMs = 10;
  let askedCount = 0;
  const failures: unknown[] = [];
  const load = opening.use(new TaskGroup((error) => failures.push(error)));
  load.run(async (closing) => {
    for (;;) {
      await delay(systemClock, pauseMs, closing);
      askedCount += 1;
      load.run(async () => void (await bench.call("moving", "x")));
    }
  });

  await eventually(() => bench.running().length === 5);
  await bench.settled("moving");
  assert.equal(scaling.find(resource)?.activities.at(-1)?.description, "Setting desired instance count to 5.");
  pauseMs = 2000;
  await eventually(() => bench.running().length === 1);
  await bench.settled("moving");
  await load[Symbol.asyncDispose]();
  assert.deepEqual(failures, []);
  assert.equal(bench.sums.get("moving a Invocations"), askedCount);
  const activities = scaling.find(resource)?.activities.filter(({ notScaled }) => notScaled === null) ?? [];
  assert.ok(
    activities.length >= 2 && activities.every(({ status }) => status !== "Failed"),
    JSON.stringify(activities),
  );
});
