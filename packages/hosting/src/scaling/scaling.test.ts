/**
 * Tests of scaling with failures: the resource rejects a change, the disk is full, or alarms cannot be created or
 * deleted.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { alarmLimits, Alarms } from "../alarms/index.ts";
import { silentLogger } from "@galatea/base";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { SteppedClock } from "@galatea/base/core/stepped-clock-fixture.ts";
import { DocumentMemory, MemoryDocuments } from "../records/contracts/index.ts";
import type { DocumentChange } from "../records/index.ts";
import { Scaling, scalingLimits } from "./scaling.ts";
import type { TargetTrackingPolicy } from "./policy.ts";
import { policyAlarmArn, scaledVariant, trackedInvocations } from "./scaled-variant-fixture.ts";

const target = scaledVariant({ minCapacity: 2 });
const policy = trackedInvocations();
const full = () => Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });

class Bench implements AsyncDisposable {
  readonly clock = new SteppedClock();
  readonly expected: number[] = [];
  refusal: string | null = null;
  refuses: (changes: readonly DocumentChange[]) => boolean = () => false;
  alarms!: Alarms;
  scaling!: Scaling;

  static async open({ alarmsMax = alarmLimits.alarmsMax } = {}): Promise<Bench> {
    const bench = new Bench();
    const { clock } = bench;
    const documents = new (class extends MemoryDocuments {
      override async write(changes: readonly DocumentChange[]): Promise<number> {
        if (bench.refuses(changes)) throw full();
        return super.write(changes);
      }
    })(new DocumentMemory());
    const common = { documents, readValues: () => Promise.resolve(new Map()), clock, logger: silentLogger };
    const actions = (arn: string) => bench.scaling.action(arn);
    bench.alarms = await Alarms.open({ ...common, actions, limits: { ...alarmLimits, alarmsMax } });
    let desired = 1;
    bench.scaling = await Scaling.open({
      ...common,
      alarms: bench.alarms,
      resources: {
        capacity: () => Promise.resolve({ desired, running: desired, isMoving: false }),
        scale(_, to) {
          if (bench.refusal !== null) return Promise.reject(new Error(bench.refusal));
          bench.expected.push((desired = to));
          return Promise.resolve({ done: Promise.resolve() });
        },
      },
      newId: () => `id ${bench.expected.length}`,
      limits: scalingLimits,
    });
    return bench;
  }

  get statuses(): readonly string[] {
    return this.scaling.list().flatMap(({ activities }) => activities.map(({ status }) => status));
  }

  get alarmNames(): readonly string[] {
    return this.alarms.list().map(({ definition }) => definition.name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scaling[Symbol.asyncDispose]();
    await this.alarms[Symbol.asyncDispose]();
  }
}

test("a scaling activity whose final write fails on a full disk becomes Successful when there is space", async () => {
  await using bench = await Bench.open();
  let isFull = true;
  let refused = 0;
  const isEnd = (change: DocumentChange) => change.do === "put" && change.body.includes('"Successful"');
  bench.refuses = (changes) => {
    const refuses = isFull && changes.some(isEnd);
    if (refuses) refused += 1;
    return refuses;
  };
  await bench.scaling.register(target);
  assert.deepEqual(bench.expected, [2]);
  await eventually(() => refused === 1);
  assert.deepEqual(bench.statuses, ["InProgress"]);
  isFull = false;
  await eventually(() => {
    bench.clock.advance(1000);
    return bench.statuses[0] === "Successful";
  });
});

test("bounds that the resource rejects are stored, and a Failed activity has the reason", async () => {
  await using bench = await Bench.open();
  bench.refusal = "the account has no more instances";
  await bench.scaling.register(target);
  const [record] = bench.scaling.list();
  assert.equal(record?.target.minCapacity, 2);
  assert.equal(record?.correcting, null);
  const [activity] = record?.activities ?? [];
  assert.equal(activity?.status, "Failed");
  assert.match(activity?.statusMessage ?? "", /Reason: the account has no more instances$/);
});

test("a policy whose alarms cannot be created is not stored", async () => {
  await using bench = await Bench.open({ alarmsMax: 1 });
  await bench.scaling.register(target);
  await assert.rejects(bench.scaling.putPolicy(policy, policyAlarmArn), { code: "LimitExceeded" });
  assert.deepEqual(bench.scaling.list()[0]?.policies, []);
  assert.deepEqual(bench.alarmNames, []);
});

test("deregistering a target deletes its policies, and keeps only alarms that composite alarms depend on", async () => {
  await using bench = await Bench.open();
  await bench.scaling.register(target);
  const second: TargetTrackingPolicy = {
    ...policy,
    name: "q",
    arn: `${policy.arn}q`,
    highAlarm: "high q",
    lowAlarm: "low q",
  };
  for (const each of [policy, second]) await bench.scaling.putPolicy(each, policyAlarmArn);
  const { definition } = bench.alarms.get("high") ?? assert.fail();
  const facts = { ...definition, actions: { OK: [], ALARM: [], INSUFFICIENT_DATA: [] } };
  await bench.alarms.put({ ...facts, kind: "composite", name: "mine", rule: "ALARM(high)" });
  await bench.scaling.deregister(target);
  assert.deepEqual(bench.scaling.list(), []);
  assert.deepEqual(bench.alarmNames, ["high", "low", "mine"]);
});
