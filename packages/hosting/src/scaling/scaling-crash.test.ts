/**
 * Tests that kill a platform after each write of a scaling transition. The next run must reach the same result without
 * leftovers.
 */
import assert from "node:assert/strict";
import { alarmLimits, Alarms } from "../alarms/index.ts";
import { sumAlarm } from "../alarms/sum-alarm-fixture.ts";
import { silentLogger } from "@galatea/base";
import { clockWithoutTimers } from "@galatea/base/core/clock-without-timers-fixture.ts";
import {
  MemoryDocuments,
  recordedTransitionsContract,
  type DocumentMemory,
  type RecordedTransition,
} from "../records/contracts/index.ts";
import { Scaling, scalingLimits } from "./scaling.ts";
import type { ResourceCapacity } from "./metric-capacity.ts";
import type { ScheduledAction, StepPolicy } from "./policy.ts";
import {
  invocationsSum,
  policyAlarmArn,
  policyArn,
  scaledVariant,
  trackedInvocations,
  scaledVariantKey,
} from "./scaled-variant-fixture.ts";

const minuteMs = 60_000;
const startMs = Date.UTC(2026, 10, 22);
const never = new AbortController().signal;

const target = scaledVariant({ createdMs: startMs });
const policy = trackedInvocations({ createdMs: startMs });
const steps: StepPolicy = {
  ...scaledVariantKey,
  name: "s",
  arn: policyArn("s"),
  createdMs: startMs,
  type: "StepScaling",
  adjustmentType: "ChangeInCapacity",
  steps: [{ lower: 0, upper: null, adjustment: 1 }],
  magnitudeMin: 0,
  cooldownMs: 5 * minuteMs,
  aggregation: "Average",
  configuration: {},
};
/** The user's alarm for the step policy. */
const busy = sumAlarm("busy", {
  actions: { OK: [], ALARM: [steps.arn], INSUFFICIENT_DATA: [] },
  configuredMs: startMs,
  watched: invocationsSum,
  threshold: 100,
  evaluationPeriods: 2,
  datapointsToAlarm: 2,
});
/** A scheduled action that is due while a test waits for the end of an activity. */
const scheduled: ScheduledAction = {
  ...scaledVariantKey,
  name: "a",
  arn: "arn:aws:autoscaling:r:1:scheduledAction:1",
  expression: "",
  timezone: "UTC",
  startMs: null,
  endMs: null,
  createdMs: startMs,
  minCapacity: 3,
  maxCapacity: null,
  lastRunMs: null,
};

/** The state that survives a kill of the platform: the scaled resource, its load, and the time. */
interface ExternalState {
  readonly capacity: number | null;
  readonly nowMs: number;
  readonly load: number;
  readonly isMoving: boolean;
}

class CrashFixture implements AsyncDisposable {
  readonly scaleCalls: number[] = [];
  alarms!: Alarms;
  scaling!: Scaling;
  /** Capacity of the variant; null: the variant was deleted. */
  capacity: number | null;
  nowMs: number;
  /** Total load of all instances, per minute. */
  load: number;
  /** True during a change by another caller, which ends after ten minutes. */
  isMoving: boolean;

  constructor({ capacity, nowMs, load, isMoving }: ExternalState) {
    this.capacity = capacity;
    this.nowMs = nowMs;
    this.load = load;
    this.isMoving = isMoving;
  }

  static async open(memory: DocumentMemory, outside: ExternalState | null): Promise<CrashFixture> {
    const fixture = new CrashFixture(outside ?? { capacity: 1, nowMs: startMs, load: 100, isMoving: false });
    const clock = clockWithoutTimers(() => fixture.nowMs);
    const documents = new MemoryDocuments(memory);
    const readValues = (_: unknown, range: { readonly startMs: number; readonly endMs: number }) => {
      const values = new Map<number, number>();
      for (let at = range.startMs; at < range.endMs; at += minuteMs)
        values.set(at, fixture.load / (fixture.capacity ?? 1));
      return Promise.resolve(values);
    };
    const common = { documents, readValues, clock, logger: silentLogger };
    fixture.alarms = await Alarms.open({
      ...common,
      limits: alarmLimits,
      actions: (arn) => fixture.scaling.action(arn),
    });
    const resources = {
      capacity: (): Promise<ResourceCapacity | null> => {
        const { capacity, isMoving } = fixture;
        return Promise.resolve(capacity === null ? null : { desired: capacity, running: capacity, isMoving });
      },
      scale: (_: unknown, to: number) => {
        fixture.scaleCalls.push(to);
        fixture.capacity = to;
        return Promise.resolve({ done: Promise.resolve() });
      },
    };
    let count = 0;
    const newId = () => `${fixture.nowMs}-${(count += 1)}`;
    fixture.scaling = await Scaling.open({
      ...common,
      alarms: fixture.alarms,
      resources,
      newId,
      limits: scalingLimits,
    });
    fixture.found();
    return fixture;
  }

  get outside(): ExternalState {
    const { capacity, nowMs, load, isMoving } = this;
    return { capacity, nowMs, load, isMoving };
  }

  /** Simulates 45 minutes, in which alarms and schedules are evaluated. */
  async live(): Promise<void> {
    for (let tick = 0; tick < 270; tick++) {
      this.nowMs += 10_000;
      if (tick === 60) this.isMoving = false;
      await this.alarms.evaluateAll(never);
      await this.alarms.whenActionsEnd();
      await this.scaling.settled();
      await this.scaling.runScheduled();
      await this.scaling.sweep(this.scaling.list().map((each) => each.target));
    }
    assert.ok(this.scaleCalls.every((to) => to >= 1 && to <= 5));
  }

  /** Returns the observed state, including leftovers and unfinished work. */
  found(): Found {
    const records = this.scaling.list();
    const policies = records.flatMap((record) => record.policies);
    const expected = policies.flatMap((each) => (each.type === "StepScaling" ? [] : [each.highAlarm, each.lowAlarm]));
    const alarms = this.alarms.list().flatMap(({ definition: { name } }) => (name === busy.name ? [] : [name]));
    assert.deepEqual(
      alarms.toSorted(),
      expected.filter((name) => name !== null).toSorted(),
      "alarms are the policies' own",
    );
    for (const { activities } of records) assert.ok(activities.every(({ status }) => status !== "InProgress"));
    return {
      targets: records.map((record) => `${record.target.minCapacity} to ${record.target.maxCapacity}`).join(),
      policies: policies.map(({ name }) => name).join(),
      scheduled: records.flatMap((record) => record.scheduled.map(({ name }) => name)).join(),
      capacity: this.capacity,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scaling[Symbol.asyncDispose]();
    await this.alarms[Symbol.asyncDispose]();
  }
}

interface Found {
  readonly targets: string;
  readonly policies: string;
  readonly scheduled: string;
  readonly capacity: number | null;
}

const none: Found = { targets: "", policies: "", scheduled: "", capacity: 1 };
const registered: Found = { ...none, targets: "1 to 5" };
const following: Found = { ...registered, policies: "p" };
const stepping: Found = { ...registered, policies: "s" };
const planned: Found = { ...registered, scheduled: "a" };

const register = (fixture: CrashFixture) => fixture.scaling.register(target);

async function followed(fixture: CrashFixture): Promise<void> {
  await register(fixture);
  await fixture.scaling.putPolicy(policy, policyAlarmArn);
}

async function stepped(fixture: CrashFixture): Promise<void> {
  await register(fixture);
  await fixture.scaling.putPolicy(steps, policyAlarmArn);
  await fixture.alarms.put(busy);
}

const plan =
  (expression: string, firstMs = startMs) =>
  (fixture: CrashFixture) =>
    fixture.scaling.putScheduled({ ...scheduled, expression, startMs: firstMs });
const at = (afterMs: number) => `at(${new Date(afterMs).toISOString().slice(0, 19)})`;

/** A time after the initial changes have taken effect. */
const soonMs = startMs + 60 * minuteMs;

const rows: readonly RecordedTransition<CrashFixture, Found>[] = [
  { what: "a target is registered", request: register, orElse: [none], end: registered, writesMin: 1 },
  {
    what: "a target is registered above what there is",
    request: (fixture) => fixture.scaling.register({ ...target, minCapacity: 3 }),
    orElse: [none],
    end: { ...registered, targets: "3 to 5", capacity: 3 },
    writesMin: 3,
  },
  {
    what: "a target is registered above what there is while something else moves",
    async given(fixture) {
      await register(fixture);
      fixture.isMoving = true;
    },
    async request(fixture) {
      fixture.isMoving = true;
      await fixture.scaling.register({ ...target, minCapacity: 3 });
    },
    end: { ...registered, targets: "3 to 5", capacity: 3 },
    writesMin: 3,
  },
  {
    what: "a target is tagged",
    given: register,
    request: (fixture) => fixture.scaling.setTags(scaledVariantKey, { team: "a" }),
    end: registered,
    writesMin: 1,
  },
  {
    what: "a target is deregistered",
    given: followed,
    request: (fixture) => fixture.scaling.deregister(scaledVariantKey),
    orElse: [following],
    end: none,
    writesMin: 2,
  },
  {
    what: "the resource of a target is deleted",
    given: followed,
    async request(fixture) {
      fixture.capacity = null;
      await fixture.live();
    },
    end: { ...none, capacity: null },
    writesMin: 2,
  },
  {
    what: "a policy is put",
    given: register,
    request: (fixture) => fixture.scaling.putPolicy(policy, policyAlarmArn),
    orElse: [registered],
    end: following,
    writesMin: 3,
  },
  {
    what: "a policy no longer scales in",
    given: followed,
    request: (fixture) =>
      fixture.scaling.putPolicy({ ...policy, isScaleInDisabled: true, lowAlarm: null }, policyAlarmArn),
    end: following,
    writesMin: 3,
  },
  {
    what: "a policy is deleted",
    given: followed,
    request: (fixture) => fixture.scaling.deletePolicy(policy),
    orElse: [following],
    end: registered,
    writesMin: 2,
  },
  {
    what: "the load grows",
    given: followed,
    async request(fixture) {
      fixture.load = 400;
      await fixture.live();
    },
    end: { ...following, capacity: 4 },
    writesMin: 5,
  },
  {
    what: "the load is over",
    async given(fixture) {
      fixture.capacity = 4;
      fixture.load = 400;
      await followed(fixture);
    },
    async request(fixture) {
      fixture.load = 100;
      await fixture.live();
    },
    end: following,
    writesMin: 3,
  },
  {
    what: "a step policy is put",
    given: register,
    request: (fixture) => fixture.scaling.putPolicy(steps, policyAlarmArn),
    orElse: [registered],
    end: stepping,
    writesMin: 1,
  },
  {
    what: "a step policy's alarm goes into ALARM",
    given: stepped,
    async request(fixture) {
      fixture.load = 300;
      await fixture.live();
    },
    end: { ...stepping, capacity: 3 },
    writesMin: 5,
  },
  {
    what: "a step policy is deleted",
    given: stepped,
    request: (fixture) => fixture.scaling.deletePolicy(steps),
    orElse: [stepping],
    end: registered,
    writesMin: 1,
  },
  {
    what: "an action is scheduled",
    given: register,
    request: plan("at(2100-01-01T00:00:00)"),
    orElse: [registered],
    end: planned,
    writesMin: 1,
  },
  {
    what: "a scheduled action is deleted",
    async given(fixture) {
      await register(fixture);
      await plan("at(2100-01-01T00:00:00)")(fixture);
    },
    request: (fixture) => fixture.scaling.deleteScheduled(scheduled),
    orElse: [planned],
    end: registered,
    writesMin: 1,
  },
  {
    what: "a scheduled action runs, and is over",
    async given(fixture) {
      await register(fixture);
      await plan(at(soonMs))(fixture);
    },
    request: (fixture) => fixture.live(),
    end: { ...registered, targets: "3 to 5", capacity: 3 },
    writesMin: 3,
  },
  {
    what: "a scheduled action runs while something else moves",
    async given(fixture) {
      await register(fixture);
      await plan(at(soonMs))(fixture);
    },
    async request(fixture) {
      fixture.isMoving = true;
      await fixture.live();
    },
    end: { ...registered, targets: "3 to 5", capacity: 3 },
    writesMin: 3,
  },
  {
    what: "a scheduled action runs repeatedly",
    async given(fixture) {
      await register(fixture);
      await plan("rate(100 minutes)", soonMs)(fixture);
    },
    request: (fixture) => fixture.live(),
    end: { ...planned, targets: "3 to 5", capacity: 3 },
    writesMin: 3,
  },
];

recordedTransitionsContract<
  CrashFixture,
  ExternalState,
  Found,
  | "register"
  | "deregister"
  | "tag"
  | "put policy"
  | "delete policy"
  | "schedule"
  | "unschedule"
  | "run"
  | "track"
  | "step"
>({
  name: "scalable target",
  kinds: null,
  open: (memory, outside) => CrashFixture.open(memory, outside),
  outside: (fixture) => fixture.outside,
  settled: (fixture) => fixture.live(),
  found: (fixture) => Promise.resolve(fixture.found()),
  steps: {
    register: [
      "a target is registered",
      "a target is registered above what there is",
      "a target is registered above what there is while something else moves",
    ],
    deregister: ["a target is deregistered", "the resource of a target is deleted"],
    tag: ["a target is tagged"],
    "put policy": ["a policy is put", "a policy no longer scales in", "a step policy is put"],
    "delete policy": ["a policy is deleted", "a step policy is deleted"],
    schedule: ["an action is scheduled"],
    unschedule: ["a scheduled action is deleted"],
    run: [
      "a scheduled action runs, and is over",
      "a scheduled action runs while something else moves",
      "a scheduled action runs repeatedly",
    ],
    track: ["the load grows", "the load is over"],
    step: ["a step policy's alarm goes into ALARM"],
  },
  rows,
});
