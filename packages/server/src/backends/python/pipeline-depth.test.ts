import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "@galatea/base";
import { PipelineDepth } from "./pipeline-depth.ts";

function handPace(instanceCount: number) {
  const time = { nowNs: 1e12 };
  const clock = { ...systemClock, monotonicNs: () => time.nowNs };
  return { time, pipelineDepth: new PipelineDepth(clock, instanceCount) };
}

test("the only instance of a model gets one execution ahead, and several once its runs are short", () => {
  const { time, pipelineDepth } = handPace(1);
  assert.equal(pipelineDepth.executionsMax(null), 2);
  assert.equal(pipelineDepth.executionsMax(time.nowNs), 2);
  pipelineDepth.ran(50_000);
  assert.equal(pipelineDepth.executionsMax(time.nowNs), 8);
  time.nowNs += 1e9;
  assert.equal(pipelineDepth.executionsMax(time.nowNs - 1e9), 8, "where else should they go");
  pipelineDepth.ran(20_000_000);
  assert.equal(pipelineDepth.executionsMax(time.nowNs), 2);
});

test("one of several instances gets no execution ahead while a run may be slow", () => {
  const { time, pipelineDepth } = handPace(2);
  const running = () => pipelineDepth.executionsMax(time.nowNs);
  assert.equal(pipelineDepth.executionsMax(null), 2, "an idle instance may get two executions in one tick");
  assert.equal(running(), 1, "nothing is known of the runs yet");
  pipelineDepth.ran(50_000);
  assert.equal(running(), 1, "one short run is not enough");
  time.nowNs += 11e9;
  assert.equal(running(), 8);
  assert.equal(pipelineDepth.executionsMax(time.nowNs - 2e6), 1, "the current run is slow");
  pipelineDepth.ran(400_000);
  assert.equal(running(), 2);
  pipelineDepth.ran(2_000_000);
  assert.equal(running(), 1);
  pipelineDepth.ran(50_000);
  time.nowNs += 9e9;
  assert.equal(running(), 1, "the slow run is remembered");
  time.nowNs += 2e9;
  assert.equal(running(), 8);
});
