import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import {
  ApplicationAutoScalingClient,
  DeleteScalingPolicyCommand,
  DeleteScheduledActionCommand,
  DeregisterScalableTargetCommand,
  DescribeScalableTargetsCommand,
  DescribeScalingActivitiesCommand,
  DescribeScalingPoliciesCommand,
  DescribeScheduledActionsCommand,
  ListTagsForResourceCommand,
  PutScalingPolicyCommand,
  PutScheduledActionCommand,
  RegisterScalableTargetCommand,
  TagResourceCommand,
  UntagResourceCommand,
  type PutScalingPolicyCommandInput,
  type PutScheduledActionCommandInput,
  type RegisterScalableTargetCommandInput,
  type TargetTrackingScalingPolicyConfiguration,
} from "@aws-sdk/client-application-auto-scaling";
import { CloudWatchClient, DescribeAlarmsCommand, PutMetricAlarmCommand } from "@aws-sdk/client-cloudwatch";
import { alarmLimits, Alarms, type ResolveAlarmAction } from "@galatea/hosting/alarms";
import { silentLogger } from "@galatea/base";
import { InMemoryMetricStore, type SeriesKey } from "@galatea/base/metrics";
import { DocumentMemory, MemoryDocuments } from "@galatea/hosting/records";
import {
  Scaling,
  scalingLimits,
  type ResourceCapacity,
  type ScalableResources,
  type TargetKey,
} from "@galatea/hosting/scaling";
import { createAlarmValueReader, cloudwatchService } from "../cloudwatch/index.ts";
import { ManualClock, serveServices } from "../service-fixtures.ts";
import { autoscalingService } from "./index.ts";

const minute = 60_000;
const resourceId = "endpoint/e/variant/v";
const named = {
  ServiceNamespace: "sagemaker",
  ResourceId: resourceId,
  ScalableDimension: "sagemaker:variant:DesiredInstanceCount",
} as const;
const dimensions = [
  { name: "EndpointName", value: "e" },
  { name: "VariantName", value: "v" },
];
const invocations: SeriesKey = {
  namespace: "AWS/SageMaker",
  metricName: "InvocationsPerInstance",
  dimensions,
  unit: "None",
};
const gpu: SeriesKey = {
  namespace: "/aws/sagemaker/Endpoints",
  metricName: "GPUUtilization",
  dimensions,
  unit: "Percent",
};

/** Resources that reach the desired number of instances at once. */
class Instances implements ScalableResources {
  readonly expected: number[] = [];
  found: ResourceCapacity | null = { desired: 1, running: 1, isMoving: false };
  failure: string | null = null;

  capacity({ resourceId: id }: TargetKey): Promise<ResourceCapacity | null> {
    return Promise.resolve(id === resourceId ? this.found : null);
  }

  scale(_: TargetKey, to: number): Promise<{ readonly done: Promise<void> }> {
    this.expected.push(to);
    if (this.failure !== null) return Promise.resolve({ done: Promise.reject(new Error(this.failure)) });
    this.found = { desired: to, running: to, isMoving: false };
    return Promise.resolve({ done: Promise.resolve() });
  }
}

async function served(memory = new DocumentMemory()) {
  const clock = new ManualClock();
  const series = new InMemoryMetricStore({ clock, seriesMax: 2000, bytesMax: 1e7 });
  const documents = new MemoryDocuments(memory);
  const instances = new Instances();
  const readValues = createAlarmValueReader({ series, clock });
  const alarmActions: ResolveAlarmAction = (arn) => scaling.action(arn);
  const common = { documents, readValues, clock, logger: silentLogger };
  const alarms = await Alarms.open({ ...common, actions: alarmActions, limits: alarmLimits });
  const scaling: Scaling = await Scaling.open({
    ...common,
    alarms,
    resources: instances,
    newId: randomUUID,
    limits: scalingLimits,
  });
  const services = [
    cloudwatchService({ series, clock, alarms, alarmActions, dashboards: null as never }),
    autoscalingService({ scaling, scalable: instances, alarms, newId: randomUUID, clock }),
  ];
  const gateway = await serveServices(services);
  const client = new ApplicationAutoScalingClient(gateway.client);
  const cloudwatch = new CloudWatchClient(gateway.client);
  const never = new AbortController().signal;
  const activities = async (more: object = {}) => {
    const requested = new DescribeScalingActivitiesCommand({ ServiceNamespace: "sagemaker", ...more });
    return (await client.send(requested)).ScalingActivities ?? [];
  };
  return {
    clock,
    instances,
    client,
    cloudwatch,
    activities,
    register: (more: Partial<RegisterScalableTargetCommandInput> = {}) =>
      client.send(new RegisterScalableTargetCommand({ ...named, MinCapacity: 1, MaxCapacity: 5, ...more })),
    track: (configuration: Partial<TargetTrackingScalingPolicyConfiguration> = {}) =>
      client.send(
        new PutScalingPolicyCommand({
          ...named,
          PolicyName: "track",
          PolicyType: "TargetTrackingScaling",
          TargetTrackingScalingPolicyConfiguration: {
            TargetValue: 100,
            PredefinedMetricSpecification: { PredefinedMetricType: "SageMakerVariantInvocationsPerInstance" },
            ScaleInCooldown: 600,
            ScaleOutCooldown: 200,
            ...configuration,
          },
        }),
      ),
    /**
     * Advances the clock by `count` minutes. In each minute, records `total`, divided by the running instances, as the
     * load of an instance.
     */
    async minutes(count: number, total: number, key = invocations): Promise<void> {
      for (let left = count; left > 0; left -= 1) {
        const value = total / (instances.found?.running ?? 1);
        if (total > 0) series.record(key, { value, count: 1 }, { timestampMs: clock.nowMs, resolutionMs: minute });
        clock.nowMs += minute;
        await alarms.evaluateAll(never);
        await alarms.whenActionsEnd();
        await scaling.settled();
      }
    },
    schedule: (more: Partial<PutScheduledActionCommandInput>) =>
      client.send(new PutScheduledActionCommand({ ...named, ScheduledActionName: "action", ...more })),
    scheduled: async () =>
      (await client.send(new DescribeScheduledActionsCommand({ ServiceNamespace: "sagemaker" }))).ScheduledActions ??
      [],
    async until(epochMs: number): Promise<void> {
      clock.nowMs = epochMs;
      await scaling.runScheduled();
      await scaling.settled();
    },
    async [Symbol.asyncDispose]() {
      client.destroy();
      cloudwatch.destroy();
      await gateway[Symbol.asyncDispose]();
      await alarms[Symbol.asyncDispose]();
      await scaling[Symbol.asyncDispose]();
    },
  };
}

test("a target tracking policy scales out from one instance to five and back in, with its cooldowns", async () => {
  await using at = await served();
  await at.register();
  const put = await at.track();
  assert.deepEqual(
    put.Alarms?.map(({ AlarmName }) => AlarmName?.replace(/[\da-f-]{36}$/, "")),
    ["TargetTracking-endpoint/e/variant/v-AlarmHigh-", "TargetTracking-endpoint/e/variant/v-AlarmLow-"],
  );
  await at.minutes(2, 250);
  assert.deepEqual(at.instances.expected, []);
  await at.minutes(1, 250);
  assert.deepEqual(at.instances.expected, [3]);
  // The cooldown does not delay a larger scale-out, which stops at the maximum.
  await at.minutes(4, 420);
  assert.deepEqual(at.instances.expected, [3, 5]);
  await at.minutes(5, 9000);
  assert.deepEqual(at.instances.expected, [3, 5]);
  // Scale-in starts after 15 minutes below 90 % of the target, and continues in steps with a cooldown of ten minutes.
  await at.minutes(20, 210);
  assert.deepEqual(at.instances.expected, [3, 5, 3]);
  await at.minutes(30, 0);
  assert.deepEqual(at.instances.expected, [3, 5, 3, 1]);
  const reported = (await at.activities()).map(({ Description, StatusCode }) => `${Description} ${StatusCode}`);
  assert.deepEqual(
    reported.toReversed(),
    [3, 5, 3, 1].map((count) => `Setting desired instance count to ${count}. Successful`),
  );
  const [first] = await at.activities();
  assert.match(
    first?.Cause ?? "",
    /^monitor alarm TargetTracking-endpoint\/e\/variant\/v-AlarmLow-.* in state ALARM triggered policy track$/,
  );
  const every = await at.activities({ IncludeNotScaledActivities: true });
  const reasons = every.flatMap(({ NotScaledReasons }) => NotScaledReasons?.map(({ Code }) => Code) ?? []);
  assert.ok(reasons.includes("AlreadyAtMaxCapacity"), JSON.stringify(reasons));
});

test("a target tracking policy on a customized metric (GPUUtilization of a variant) scales out, and with DisableScaleIn never in", async () => {
  await using at = await served();
  await at.register();
  await at.track({
    TargetValue: 60,
    PredefinedMetricSpecification: undefined,
    CustomizedMetricSpecification: {
      MetricName: gpu.metricName,
      Namespace: gpu.namespace,
      Dimensions: dimensions.map(({ name, value }) => ({ Name: name, Value: value })),
      Statistic: "Average",
      Unit: "Percent",
    },
    DisableScaleIn: true,
  });
  const { ScalingPolicies = [] } = await at.client.send(
    new DescribeScalingPoliciesCommand({ ServiceNamespace: "sagemaker" }),
  );
  assert.deepEqual(
    ScalingPolicies.map(({ Alarms: own, TargetTrackingScalingPolicyConfiguration: own2 }) => [
      own?.length,
      own2?.TargetValue,
    ]),
    [[1, 60]],
  );
  await at.minutes(3, 95, gpu);
  assert.deepEqual(at.instances.expected, [2]);
  await at.minutes(20, 1, gpu);
  assert.deepEqual(at.instances.expected, [2]);
});

test("the largest capacity of several policies applies; a policy without data prevents a scale-in unless its own scale-in is disabled", async () => {
  await using at = await served();
  at.instances.found = { desired: 4, running: 4, isMoving: false };
  await at.register();
  await at.track();
  const custom = { MetricName: "Queue", Namespace: "mine", Statistic: "Average" } as const;
  const put = (DisableScaleIn: boolean) => {
    const configuration = { TargetValue: 1, CustomizedMetricSpecification: custom, DisableScaleIn };
    return at.client.send(
      new PutScalingPolicyCommand({
        ...named,
        PolicyName: "queue",
        PolicyType: "TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration: configuration,
      }),
    );
  };
  await put(false);
  await at.minutes(25, 4);
  assert.deepEqual(at.instances.expected, []);
  await put(true);
  await at.minutes(2, 4);
  assert.deepEqual(at.instances.expected, [1]);
});

test("a step policy adds the instances of the step in which the alarm's metric lies, measured from the alarm's threshold", async () => {
  await using at = await served();
  await at.register({ MaxCapacity: 10 });
  const policy = (more: object): PutScalingPolicyCommandInput => ({
    ...named,
    PolicyName: "steps",
    PolicyType: "StepScaling",
    StepScalingPolicyConfiguration: {
      AdjustmentType: "ChangeInCapacity",
      Cooldown: 120,
      StepAdjustments: [
        { MetricIntervalLowerBound: 0, MetricIntervalUpperBound: 50, ScalingAdjustment: 1 },
        { MetricIntervalLowerBound: 50, ScalingAdjustment: 3 },
      ],
      ...more,
    },
  });
  const { PolicyARN = "" } = await at.client.send(new PutScalingPolicyCommand(policy({})));
  await at.cloudwatch.send(
    new PutMetricAlarmCommand({
      AlarmName: "mine",
      Namespace: gpu.namespace,
      MetricName: gpu.metricName,
      Dimensions: dimensions.map(({ name, value }) => ({ Name: name, Value: value })),
      Statistic: "Average",
      Period: 60,
      EvaluationPeriods: 1,
      Threshold: 40,
      ComparisonOperator: "GreaterThanThreshold",
      AlarmActions: [PolicyARN],
    }),
  );
  await at.minutes(1, 100, gpu);
  assert.deepEqual(at.instances.expected, [4]);
  // During the cooldown, the step counts instances that were already added.
  await at.minutes(1, 60 * 4, gpu);
  assert.deepEqual(at.instances.expected, [4]);
  await at.minutes(1, 60 * 4, gpu);
  assert.deepEqual(at.instances.expected, [4, 5]);
  const gap = policy({
    StepAdjustments: [
      { MetricIntervalLowerBound: 0, MetricIntervalUpperBound: 1, ScalingAdjustment: 1 },
      { MetricIntervalLowerBound: 2, ScalingAdjustment: 1 },
    ],
  });
  await assert.rejects(at.client.send(new PutScalingPolicyCommand(gap)), {
    name: "ValidationException",
    message: /gap/,
  });
});

test("RegisterScalableTarget corrects an instance count outside of the bounds, and a suspended direction is not scaled", async () => {
  await using at = await served();
  await at.register({ MinCapacity: 3 });
  assert.deepEqual(at.instances.expected, [3]);
  await at.register({ MinCapacity: 1, MaxCapacity: 2, SuspendedState: { DynamicScalingOutSuspended: true } });
  assert.deepEqual(at.instances.expected, [3, 2]);
  await at.register({ MinCapacity: undefined, MaxCapacity: 5 });
  await at.track();
  await at.minutes(5, 5000);
  assert.deepEqual(at.instances.expected, [3, 2]);
  const { ScalableTargets = [] } = await at.client.send(
    new DescribeScalableTargetsCommand({ ServiceNamespace: "sagemaker", ResourceIds: [resourceId] }),
  );
  const [{ MinCapacity, MaxCapacity, SuspendedState } = {}] = ScalableTargets;
  assert.deepEqual([MinCapacity, MaxCapacity, SuspendedState?.DynamicScalingOutSuspended], [1, 5, true]);
});

test("a scaling activity whose change is rejected has the status Failed, and an endpoint in transition is not scaled", async () => {
  await using at = await served();
  await at.register();
  await at.track();
  at.instances.failure = "the node has no room for 3 instances";
  await at.minutes(3, 250);
  const [activity] = await at.activities();
  assert.equal(activity?.StatusCode, "Failed");
  assert.match(
    activity?.StatusMessage ?? "",
    /^Failed to set desired instance count to 3\. Reason: the node has no room/,
  );
  at.instances.found = { desired: 1, running: 1, isMoving: true };
  await at.minutes(3, 250);
  assert.deepEqual(at.instances.expected, [3]);
});

test("scalable targets, policies, cooldowns and activities survive a restart; deleting a target deletes its policies and alarms", async () => {
  const memory = new DocumentMemory();
  {
    await using at = await served(memory);
    await at.register();
    await at.track();
    await at.minutes(3, 250);
  }
  await using at = await served(memory);
  assert.equal((await at.activities()).length, 1);
  const alarmCount = async () => (await at.cloudwatch.send(new DescribeAlarmsCommand({}))).MetricAlarms?.length;
  assert.equal(await alarmCount(), 2);
  at.instances.found = null;
  const { ScalableTargets } = await at.client.send(
    new DescribeScalableTargetsCommand({ ServiceNamespace: "sagemaker" }),
  );
  assert.deepEqual([ScalableTargets, await alarmCount()], [[], 0]);
});

test("each scalable target has its own tags, and unknown targets and policies get the service's errors", async () => {
  await using at = await served();
  const { ScalableTargetARN: ResourceARN = "" } = await at.register({ Tags: { a: "1" } });
  await at.client.send(new TagResourceCommand({ ResourceARN, Tags: { b: "2" } }));
  await at.client.send(new UntagResourceCommand({ ResourceARN, TagKeys: ["a"] }));
  assert.deepEqual((await at.client.send(new ListTagsForResourceCommand({ ResourceARN }))).Tags, { b: "2" });
  const other = { ResourceId: "endpoint/none/variant/v" };
  const refused = async (call: Promise<unknown>, name: string, message: RegExp) =>
    assert.rejects(call, { name, message });
  await refused(at.register(other), "ValidationException", /no variant v of an endpoint none/);
  await refused(
    at.register({ MinCapacity: 6 }),
    "ValidationException",
    /^Maximum capacity cannot be less than minimum capacity$/,
  );
  await refused(at.register({ MinCapacity: 0 }), "ValidationException", /MinCapacity for .* must be at least 1/);
  await refused(
    at.register({ ServiceNamespace: "ecs" }),
    "ValidationException",
    /^Unsupported service namespace, resource type/,
  );
  await refused(
    at.client.send(new DeregisterScalableTargetCommand({ ...named, ...other })),
    "ObjectNotFoundException",
    /^No scalable target found for service namespace: sagemaker, resource ID: endpoint\/none\/variant\/v, scalable dimension: /,
  );
  await refused(
    at.client.send(new DeleteScalingPolicyCommand({ ...named, PolicyName: "none" })),
    "ObjectNotFoundException",
    /^No scaling policy found for service namespace: sagemaker, policy name: none$/,
  );
  await refused(at.track({ TargetValue: 0 }), "ValidationException", /TargetValue must be greater than 0/);
  await refused(at.track({ TargetValue: Infinity }), "ValidationException", /TargetValue must be a finite number/);
  const step = { ...named, PolicyName: "step", PolicyType: "StepScaling" } as const;
  const StepAdjustments = [{ MetricIntervalLowerBound: Number.NaN, ScalingAdjustment: 1 }];
  const StepScalingPolicyConfiguration = { AdjustmentType: "ChangeInCapacity", StepAdjustments } as const;
  await refused(
    at.client.send(new PutScalingPolicyCommand({ ...step, StepScalingPolicyConfiguration })),
    "ValidationException",
    /must be finite numbers/,
  );
});

test("a scheduled action sets its bounds at its time, once after several missed times; an at() action is deleted afterwards", async () => {
  await using at = await served();
  await at.register();
  const hour = 60 * minute;
  const begin = at.clock.nowMs;
  const time = new Date(begin + 2 * hour).toISOString().slice(0, 19);
  await at.schedule({ ScheduledActionName: "once", Schedule: `at(${time})`, ScalableTargetAction: { MinCapacity: 4 } });
  const often = { Schedule: "rate(1 hour)", StartTime: new Date(begin + 3 * hour) };
  await at.schedule({
    ScheduledActionName: "often",
    ...often,
    ScalableTargetAction: { MinCapacity: 1, MaxCapacity: 2 },
  });
  await at.until(begin + hour);
  assert.deepEqual(at.instances.expected, []);
  await at.until(begin + 2 * hour);
  assert.deepEqual(at.instances.expected, [4]);
  assert.deepEqual(
    (await at.scheduled()).map(({ ScheduledActionName }) => ScheduledActionName),
    ["often"],
  );
  const [activity] = await at.activities();
  assert.equal(activity?.Cause, "minimum capacity was set to 4 while scheduled action name once was triggered");
  // Three scheduled times have passed.
  await at.until(begin + 5 * hour);
  assert.deepEqual(at.instances.expected, [4, 2]);
  await at.register({ MinCapacity: 3, MaxCapacity: 5, SuspendedState: { ScheduledScalingSuspended: true } });
  await at.until(begin + 7 * hour);
  assert.deepEqual(at.instances.expected, [4, 2, 3]);
  await at.client.send(new DeleteScheduledActionCommand({ ...named, ScheduledActionName: "often" }));
  assert.deepEqual(await at.scheduled(), []);
});

test("scheduled actions survive a restart, and an action whose times passed meanwhile runs once", async () => {
  const memory = new DocumentMemory();
  let begin: number;
  {
    await using at = await served(memory);
    begin = at.clock.nowMs;
    await at.register();
    await at.schedule({ Schedule: "rate(5 minutes)", ScalableTargetAction: { MinCapacity: 3 } });
  }
  await using at = await served(memory);
  await at.until(begin + 60 * minute);
  assert.deepEqual(at.instances.expected, [3]);
  const [{ Schedule, Timezone, ScalableTargetAction } = {}] = await at.scheduled();
  assert.deepEqual([Schedule, Timezone, ScalableTargetAction], ["rate(5 minutes)", "UTC", { MinCapacity: 3 }]);
});

test("PutScheduledAction rejects schedules that are invalid or entirely in the past", async () => {
  await using at = await served();
  await at.register();
  const bounds = { ScalableTargetAction: { MinCapacity: 1 } };
  for (const [more, message] of [
    [{ ...bounds, Schedule: "at(2020-01-01T00:00:00)" }, /has no future time/],
    [{ ...bounds, Schedule: "cron(0 10 * * *)" }, /cannot be read: cron takes six fields/],
    [{ ...bounds, Schedule: "rate(5 minutes)", EndTime: new Date(0) }, /has no future time/],
    [{ ...bounds, Schedule: "cron(0 10 * * ? *)", Timezone: "Mars/Crater" }, /cannot be read/],
    [bounds, /Schedule must be specified/],
    [{ Schedule: "rate(5 minutes)" }, /MinCapacity, MaxCapacity or both/],
    [{ Schedule: "rate(5 minutes)", ScalableTargetAction: { MinCapacity: 3, MaxCapacity: 2 } }, /Maximum capacity/],
    [
      { Schedule: "rate(5 minutes)", ScalableTargetAction: { MinCapacity: 0 } },
      /MinCapacity for .* must be at least 1/,
    ],
  ] as const)
    await assert.rejects(at.schedule(more), { name: "ValidationException", message });
  assert.deepEqual(await at.scheduled(), []);
});
