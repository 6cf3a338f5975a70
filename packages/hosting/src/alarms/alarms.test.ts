/** Tests of `Alarms` with concurrent and failing writes and evaluations. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SteppedClock } from "@galatea/base/core/stepped-clock-fixture.ts";
import { ChangeNotifier, silentLogger } from "@galatea/base";
import { DocumentMemory, MemoryDocuments } from "../records/contracts/index.ts";
import type { DocumentChange } from "../records/index.ts";
import { alarmLimits, Alarms } from "./alarms.ts";
import type { ResolveAlarmAction, CompositeAlarm } from "./alarm.ts";
import { commonAlarmFields, sumAlarm } from "./sum-alarm-fixture.ts";

const minuteMs = 60_000;
const never = new AbortController().signal;
const policy = "arn:aws:autoscaling:r:1:scalingPolicy:x:resource/sagemaker/endpoint/e:policyName/p";

const actions = { OK: [], ALARM: [policy], INSUFFICIENT_DATA: [] };
const errors = sumAlarm("errors", { actions });
const composite = (name: string, rule: string): CompositeAlarm => ({
  ...commonAlarmFields,
  actions,
  kind: "composite",
  name,
  rule,
});

/**
 * Alarms over a metric with the same value in each minute. `beforeWrite` is awaited before each write, and may reject.
 */
class Bench implements AsyncDisposable {
  readonly clock = new SteppedClock();
  readonly memory = new DocumentMemory();
  value = 100;
  beforeWrite: (changes: readonly DocumentChange[]) => Promise<void> = () => Promise.resolve();
  readonly ran: string[] = [];
  alarms!: Alarms;

  static async open(): Promise<Bench> {
    const bench = new Bench();
    const documents = new (class extends MemoryDocuments {
      override async write(changes: readonly DocumentChange[]): Promise<number> {
        await bench.beforeWrite(changes);
        return super.write(changes);
      }
    })(bench.memory);
    const actions: ResolveAlarmAction = (arn) => ({
      repeats: true,
      run: ({ status }) => Promise.resolve(void bench.ran.push(`${arn === policy ? "policy" : arn} ${status.state}`)),
    });
    bench.alarms = await Alarms.open({
      documents,
      readValues: (_, range) => Promise.resolve(new Map([[range.endMs - minuteMs, bench.value]])),
      actions,
      limits: alarmLimits,
      clock: bench.clock,
      logger: silentLogger,
    });
    return bench;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.alarms[Symbol.asyncDispose]();
  }
}

test("an alarm that is deleted while its history is written stays deleted", async () => {
  await using bench = await Bench.open();
  const held = new ChangeNotifier();
  const writing = new ChangeNotifier();
  const writingOpened = writing.nextChange();
  const heldOpened = held.nextChange();
  // The write of the first action's result is delayed.
  bench.beforeWrite = (changes) => {
    const isAction = changes.some((change) => change.do === "put" && change.body.includes("Successfully executed"));
    if (!isAction) return Promise.resolve();
    writing.notify();
    return heldOpened;
  };
  await bench.alarms.put(errors);
  await writingOpened;
  const deleted = bench.alarms.delete(["errors"]);
  for (let tick = 0; tick < 10; tick += 1) await new Promise((resolve) => setImmediate(resolve));
  held.notify();
  await deleted;
  await bench.alarms.whenActionsEnd();
  assert.equal(bench.alarms.get("errors"), null);
  assert.deepEqual(
    [...bench.memory.held.values()].map(({ kind }) => kind),
    ["alarm-gone"],
  );
});

test("an evaluation whose write fails changes no state, and the next evaluation records the change", async () => {
  await using bench = await Bench.open();
  await bench.alarms.put(errors);
  assert.equal(bench.alarms.get("errors")?.status.state, "ALARM");
  bench.value = 1;
  let isRefused = true;
  // The disk is full for the first write only.
  bench.beforeWrite = () => {
    if (!isRefused) return Promise.resolve();
    isRefused = false;
    return Promise.reject(new Error("the disk is full"));
  };
  bench.clock.advance(minuteMs);
  for (let look = 0; look < 2; look += 1) await bench.alarms.evaluateAll(never);
  assert.equal(bench.alarms.get("errors")?.status.state, "OK");
  const reported = await bench.alarms.history("errors");
  assert.deepEqual(
    reported.filter(({ kind }) => kind === "StateUpdate").map(({ summary }) => summary),
    ["Alarm updated from INSUFFICIENT_DATA to ALARM", "Alarm updated from ALARM to OK"],
  );
});

test("repeated actions continue when the clock is set back", async () => {
  await using bench = await Bench.open();
  await bench.alarms.put(errors);
  await bench.alarms.whenActionsEnd();
  assert.deepEqual(bench.ran, ["policy ALARM"]);
  bench.clock.advance(-86_400_000);
  await bench.alarms.evaluateAll(never);
  bench.clock.advance(minuteMs);
  await bench.alarms.evaluateAll(never);
  await bench.alarms.whenActionsEnd();
  assert.equal(bench.ran.length, 3);
});

test("composite alarms with 20^7 paths to one alarm are validated and evaluated without visiting each path", async () => {
  await using bench = await Bench.open();
  await bench.alarms.put(errors);
  const width = 20;
  let below = ["errors"];
  for (let depth = 0; depth < 7; depth += 1) {
    const names = Array.from({ length: width }, (_, position) => `${depth}-${position}`);
    const rule = below.map((name) => `ALARM("${name}")`).join(" OR ");
    for (const name of names) await bench.alarms.put(composite(name, rule));
    below = names;
  }
  const rule = below.map((name) => `ALARM("${name}")`).join(" OR ");
  await bench.alarms.put(composite("top", rule));
  assert.equal(bench.alarms.get("top")?.status.state, "ALARM");
});
