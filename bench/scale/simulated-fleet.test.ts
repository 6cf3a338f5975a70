import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { derivePlacementKey } from "../../packages/hosting/src/endpoints/model-rank.ts";
import { movedShare, SimulatedFleet, type SimulatedResponse, type SimulationOptions } from "./simulated-fleet.ts";
import { Timeline } from "./timeline.ts";

const key = derivePlacementKey("a simulated endpoint");
const options: SimulationOptions = { podCount: 1, modelsMax: 2, serviceMs: 10, loadMs: 100, coldMs: 1000, key };

/** Sends the requests at their times, and returns their responses in the order of the requests. */
function replay(fleet: SimulatedFleet, requests: readonly (readonly [atMs: number, target: string])[]) {
  const responses: SimulatedResponse[] = [];
  for (const [index, [atMs, target]] of requests.entries())
    fleet.timeline.at(atMs, () => fleet.request(target, (response) => (responses[index] = response)));
  fleet.timeline.run();
  return responses;
}

test("events run in the order of their times, and those of one time in the order in which they were added", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(50)), (times) => {
      const timeline = new Timeline();
      const seen: [number, number][] = [];
      for (const [index, atMs] of times.entries()) timeline.at(atMs, () => seen.push([timeline.nowMs, index]));
      timeline.run();
      assert.deepEqual(
        seen,
        times.map((atMs, index) => [atMs, index]).toSorted(([a = 0, i = 0], [b = 0, j = 0]) => a - b || i - j),
      );
    }),
  );
});

test("a pod serves one request after the other, and the first for a model waits for its load", () => {
  const hit = (tookMs: number) => ({ tookMs, isMiss: false });
  const miss = (tookMs: number) => ({ tookMs, isMiss: true });
  assert.deepEqual(
    replay(new SimulatedFleet(options), [
      [0, "a"],
      [50, "a"],
      [200, "a"],
      [205, "a"],
    ]),
    [miss(110), miss(70), hit(10), hit(15)],
  );
});

test("the least recently used model is unloaded for another, and its next request waits for a load", () => {
  const requests = ["a", "b", "a", "c", "a", "b"].map((target, index) => [index * 1000, target] as const);
  const responses = replay(new SimulatedFleet(options), requests);
  assert.deepEqual(
    responses.map(({ isMiss }) => isMiss),
    [true, true, false, true, false, true],
  );
});

test("a settled fleet has each model once, and loads none of them again under a light load", () => {
  const targets = Array.from({ length: 100 }, (_, index) => `${index}.tar.gz`);
  const fleet = new SimulatedFleet({ ...options, podCount: 10, modelsMax: 40 });
  fleet.settle(targets);
  assert.equal(
    fleet.modelsPerPod().reduce((sum, count) => sum + count),
    100,
  );
  const responses = replay(
    fleet,
    targets.map((target, index) => [index * 20, target] as const),
  );
  assert.ok(responses.length === 100 && responses.every(({ tookMs, isMiss }) => tookMs === 10 && !isMiss));
  assert.equal(fleet.additionalCopyCount, 0);
});

test("a model that needs several pods gets copies, and its requests spread over them", () => {
  const fleet = new SimulatedFleet({ ...options, podCount: 10 });
  fleet.settle(["hot"]);
  const requests = Array.from({ length: 5000 }, (_, index) => [index * 4, "hot"] as const);
  const responses = replay(fleet, requests);
  assert.ok(fleet.additionalCopyCount >= 2 && fleet.additionalCopyCount <= 4, String(fleet.additionalCopyCount));
  assert.ok(responses.every(({ isMiss }) => !isMiss));
  assert.ok(responses.slice(-1000).every(({ tookMs }) => tookMs <= 90));
});

test("a hot model replaces cold models of other pods, and no models in use", () => {
  for (const [usedEveryMs, isReplaced] of [
    [100, false],
    [1e9, true],
  ] as const) {
    const others = Array.from({ length: 12 }, (_, index) => `other-${index}`);
    const fleet = new SimulatedFleet({ ...options, podCount: 2, modelsMax: 1 });
    fleet.settle(["hot", ...others]);
    const [other] = others.filter((target) => fleet.podsWith(target) === 1);
    assert.ok(other !== undefined);
    const hot = Array.from({ length: 3000 }, (_, index) => [2000 + index, "hot"] as const);
    const used = Array.from(
      { length: Math.floor(5000 / usedEveryMs) },
      (_, index) => [index * usedEveryMs, other] as const,
    );
    replay(fleet, [...hot, ...used]);
    assert.equal(fleet.podsWith("hot") === 2, isReplaced);
  }
});

test("pods that are added get about their share of the models", () => {
  const targets = Array.from({ length: 5000 }, (_, index) => `${index}.tar.gz`);
  for (const [podCount, addedCount] of [
    [1, 1],
    [9, 1],
    [45, 5],
  ] as const) {
    const share = movedShare(targets, { podCount, addedCount, key }) / (addedCount / (podCount + addedCount));
    assert.ok(share > 0.75 && share < 1.25, `${podCount}: ${share}`);
  }
});
