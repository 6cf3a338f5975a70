import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "@galatea/base";
import { Pace } from "./pace.ts";

function handPace(instanceCount: number) {
  const time = { nowNs: 1e12 };
  const clock = { ...systemClock, monotonicNs: () => time.nowNs };
  return { time, pace: new Pace(clock, instanceCount) };
}

test("the only instance of a model is handed one ahead, several once its runs are brief", () => {
  const { time, pace } = handPace(1);
  assert.equal(pace.executionsMax(null), 2);
  assert.equal(pace.executionsMax(time.nowNs), 2);
  pace.ran(50_000);
  assert.equal(pace.executionsMax(time.nowNs), 8);
  time.nowNs += 1e9;
  assert.equal(pace.executionsMax(time.nowNs - 1e9), 8, "where else should they go");
  pace.ran(20_000_000);
  assert.equal(pace.executionsMax(time.nowNs), 2);
});

test("one of several instances is handed nothing ahead while a run may be slow", () => {
  const { time, pace } = handPace(2);
  const running = () => pace.executionsMax(time.nowNs);
  assert.equal(pace.executionsMax(null), 2, "a free one takes what comes in this turn");
  assert.equal(running(), 1, "nothing is known of the runs yet");
  pace.ran(50_000);
  assert.equal(running(), 1, "one brief run proves nothing");
  time.nowNs += 11e9;
  assert.equal(running(), 8);
  assert.equal(pace.executionsMax(time.nowNs - 2e6), 1, "this one turns out to be slow");
  pace.ran(400_000);
  assert.equal(running(), 2);
  pace.ran(2_000_000);
  assert.equal(running(), 1);
  pace.ran(50_000);
  time.nowNs += 9e9;
  assert.equal(running(), 1, "the slow run is remembered");
  time.nowNs += 2e9;
  assert.equal(running(), 8);
});
