import { setImmediate as nextTurn } from "node:timers/promises";
import { alarmLimits, Alarms, type ResolveAlarmAction, type EvaluatedMetric } from "@galatea/hosting/alarms";
import {
  createAlarmValueReader,
  autoscalingService,
  checkInput,
  cloudwatchService,
  type CallContext,
} from "@galatea/aws";
import { ByteBudget, ByteLease, silentLogger, type Clock } from "@galatea/base";
import { InMemoryMetricStore } from "@galatea/base/metrics";
import { MemoryDocuments } from "@galatea/hosting/records";
import { Scaling, scalingLimits, type ScalingActivity } from "@galatea/hosting/scaling";
import { LoadError } from "./load.ts";
import { metricFeed, type MetricSource } from "./metric-feed.ts";
import { SimulatedVariant } from "./simulated-variant.ts";
import { titleOf } from "./watched-metrics.ts";

export interface SimulationInput {
  readonly source: MetricSource;
  /** The input of PutScalingPolicy, or only its policy configuration. */
  readonly policy: object;
  /** The input of PutMetricAlarm; required for a step policy. */
  readonly alarm: object | null;
  readonly minCapacity: number;
  readonly maxCapacity: number;
  readonly startCapacity: number;
  /** Time from the request for an instance until it is in service, in milliseconds. */
  readonly startupMs: number;
}

export interface SimulatedMinute {
  readonly atMs: number;
  /** Total load of all instances: requests per second, or the first recorded metric of the policy. */
  readonly load: number;
  /** The metric's value in this minute, as the policy evaluates it; null without data. */
  readonly metric: number | null;
  readonly desired: number;
  readonly running: number;
}

export interface Simulation {
  readonly minutes: readonly SimulatedMinute[];
  readonly activities: readonly ScalingActivity[];
  readonly metricName: string;
  /** The policy's target value, or the threshold of its alarm. */
  readonly targetValue: number;
}

const tickMs = alarmLimits.tickMs;
const minuteMs = 60_000;
/**
 * Delay after the end of a minute, in milliseconds. As on the platform, the minute's metrics are recorded before they
 * are evaluated.
 */
const afterTickMs = 500;
/** A Thursday at midnight. Printed times are relative to this time. */
const originMs = Date.UTC(2026, 0, 1);
const named = {
  ServiceNamespace: "sagemaker",
  ResourceId: "endpoint/simulated/variant/AllTraffic",
  ScalableDimension: "sagemaker:variant:DesiredInstanceCount",
} as const;
const policyName = "simulated";

/** A simulated clock without timers. */
class SimulatedClock implements Clock {
  nowMs = originMs;
  epochMs(): number {
    return this.nowMs;
  }
  monotonicNs(): number {
    return this.nowMs * 1e6;
  }
  timer(): Disposable {
    return { [Symbol.dispose]() {} };
  }
}

/** Runs the platform's own alarms, policies and services with records in memory. Throws AwsError and LoadError. */
export async function simulateScaling(requested: SimulationInput): Promise<Simulation> {
  await using fixture = await openWorld(requested);
  const { scaling, clock, variant, alarms } = fixture;
  const record = scaling.find({ resourceId: named.ResourceId, dimension: named.ScalableDimension });
  const [policy] = record?.policies ?? [];
  if (policy === undefined) throw new LoadError("the policy was not stored");
  const alarm = alarms.list().find(({ definition }) => definition.actions.ALARM.includes(policy.arn))?.definition;
  if (alarm?.kind !== "metric") throw new LoadError("a step policy needs the alarm that runs it: --alarm FILE");
  const { watched } = alarm;
  const feed = metricFeed(requested.source, { watched, series: fixture.series, tickMs });
  const minutes: SimulatedMinute[] = [];
  const never = new AbortController().signal;
  for (let timeMs = 0; timeMs < feed.durationMs; timeMs += tickMs) {
    clock.nowMs = originMs + timeMs + tickMs / 2;
    const load = feed.record({ timeMs: timeMs + tickMs / 2, nowMs: clock.nowMs, running: variant.running });
    clock.nowMs = originMs + timeMs + tickMs + afterTickMs;
    variant.advance();
    await nextTurn();
    await alarms.evaluateAll(never);
    await alarms.whenActionsEnd();
    await scaling.runScheduled();
    if ((timeMs + tickMs) % minuteMs === 0)
      minutes.push(await minuteOf(fixture, watched, { load, endMs: clock.nowMs }));
  }
  const activities =
    scaling.find({ resourceId: named.ResourceId, dimension: named.ScalableDimension })?.activities ?? [];
  return {
    minutes,
    activities: activities.map((each) => ({ ...each, startMs: each.startMs - originMs })),
    metricName: titleOf(watched),
    targetValue: policy.type === "TargetTrackingScaling" ? policy.targetValue : alarm.threshold,
  };
}

async function minuteOf(
  { readValues, variant }: Fixture,
  watched: EvaluatedMetric,
  { load, endMs }: { readonly load: number; readonly endMs: number },
): Promise<SimulatedMinute> {
  const startMs = Math.floor(endMs / minuteMs) * minuteMs - minuteMs;
  // A metric math query may have a period other than a minute. Its latest value is used as the minute's value.
  const [looked, fromMs] =
    watched.kind === "metric"
      ? [{ ...watched, periodMs: minuteMs }, startMs]
      : [watched, Math.floor((startMs + minuteMs) / watched.periodMs - 1) * watched.periodMs];
  const values = await readValues(looked, { startMs: fromMs, endMs: startMs + minuteMs });
  const { desired, running } = variant;
  return { atMs: startMs - originMs, load, metric: [...values.values()].at(-1) ?? null, desired, running };
}

type Fixture = Awaited<ReturnType<typeof openWorld>>;

async function openWorld(requested: SimulationInput) {
  await using opening = new AsyncDisposableStack();
  const clock = new SimulatedClock();
  const series = new InMemoryMetricStore({ clock, seriesMax: 100, bytesMax: 64 * 2 ** 20 });
  const readValues = createAlarmValueReader({ series, clock });
  const common = { documents: new MemoryDocuments(), readValues, clock, logger: silentLogger };
  const alarmActions: ResolveAlarmAction = (arn) => scaling.action(arn);
  const alarms = opening.use(await Alarms.open({ ...common, actions: alarmActions, limits: alarmLimits }));
  const { startupMs } = requested;
  const variant = new SimulatedVariant(requested.startCapacity, { startupMs, nowMs: () => clock.nowMs });
  const limits = { ...scalingLimits, activitiesMax: 10_000 };
  let activityCount = 0;
  const newId = () => `simulated-${(activityCount += 1)}`;
  const scaling: Scaling = opening.use(await Scaling.open({ ...common, alarms, resources: variant, newId, limits }));
  // The plan may end during a change of the capacity. Disposal of the policies waits for that change, which no tick of
  // the clock would complete.
  opening.defer(() => variant.complete());
  const autoscaling = autoscalingService({ scaling, scalable: variant, alarms, newId, clock });
  const bounds = { ...named, MinCapacity: requested.minCapacity, MaxCapacity: requested.maxCapacity };
  const context = callContext();
  const { RegisterScalableTarget, PutScalingPolicy } = autoscaling.operations;
  checkInput(autoscaling, "RegisterScalableTarget", bounds);
  await RegisterScalableTarget.handle(bounds, context);
  const policy = policyInput(requested.policy);
  checkInput(autoscaling, "PutScalingPolicy", policy);
  const { PolicyARN } = await PutScalingPolicy.handle(policy as Parameters<typeof PutScalingPolicy.handle>[0], context);
  if (requested.alarm !== null) {
    const cloudwatch = cloudwatchService({ series, clock, alarms, alarmActions, dashboards: null as never });
    const { PutMetricAlarm } = cloudwatch.operations;
    const alarm = { AlarmName: "simulated", ...requested.alarm, AlarmActions: [PolicyARN] };
    checkInput(cloudwatch, "PutMetricAlarm", alarm);
    await PutMetricAlarm.handle(alarm, context);
  }
  const closing = opening.move();
  return {
    clock,
    series,
    readValues,
    alarms,
    scaling,
    variant,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

function policyInput(input: object): object {
  const facts = { PolicyName: policyName, ...named };
  if ("TargetValue" in input) {
    return { ...facts, PolicyType: "TargetTrackingScaling", TargetTrackingScalingPolicyConfiguration: input };
  }
  if ("StepAdjustments" in input) return { ...facts, PolicyType: "StepScaling", StepScalingPolicyConfiguration: input };
  return { PolicyName: policyName, ...input, ...named };
}

/** Returns the context of an operation that is called without a request. */
function callContext(): CallContext {
  return {
    requestId: "simulated",
    region: "us-east-1",
    accountId: "000000000000",
    accessKeyId: null,
    userAgent: "",
    signal: new AbortController().signal,
    memory: new ByteLease(new ByteBudget(2 ** 20)),
    nextTick: () => nextTurn(),
  };
}
