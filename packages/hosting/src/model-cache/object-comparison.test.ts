/** Comparison of models with objects in a store that may return outdated heads (`headAgeMsMax`). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AwsError } from "@galatea/base";
import { SteppedClock } from "@galatea/base/core/stepped-clock-fixture.ts";
import { ModelCacheFixture, nextTick } from "./model-cache-fixture.ts";
import { ModelMissingError } from "./model-container.ts";

const headAgeMsMax = 5000;

/** Opens a model cache with one model, `a`, that has been invoked once. Counts the comparisons with its object. */
async function opened(clock: SteppedClock) {
  const fixture = new ModelCacheFixture({}, undefined, { clock });
  fixture.trees.headAgeMsMax = headAgeMsMax;
  const find = fixture.trees.find.bind(fixture.trees);
  const state = { fixture, findCount: 0, failure: null as Promise<never> | null };
  fixture.trees.find = (target) => {
    state.findCount += 1;
    return state.failure ?? find(target);
  };
  fixture.put("a");
  await fixture.invoke("a");
  return state;
}

const unavailable = () => new AwsError("ServiceUnavailable", "away", { statusFallback: 503 });

test("a model is compared with its object at most once in five seconds, whatever the number of requests", async () => {
  const clock = new SteppedClock();
  const state = await opened(clock);
  for (let second = 0; second < 60; second += 1) {
    await Promise.all(Array.from({ length: 20 }, () => state.fixture.invoke("a")));
    clock.advance(1000);
  }
  assert.equal(state.findCount, 12);
});

test("a replaced model is used after five seconds, and a deleted one is missing", async () => {
  const clock = new SteppedClock();
  const { fixture } = await opened(clock);
  fixture.put("a", 2 ** 20, "2");
  await fixture.invoke("a");
  assert.deepEqual(fixture.events, ["unpack a", "load a"]);
  clock.advance(headAgeMsMax);
  await fixture.invoke("a");
  assert.deepEqual(fixture.outdated, ["a"]);
  assert.deepEqual(fixture.targets(), ["a"]);
  assert.equal(fixture.events.filter((event) => event === "load a").length, 2);
  fixture.objects.delete("a");
  await fixture.invoke("a");
  clock.advance(headAgeMsMax);
  await assert.rejects(fixture.invoke("a"), ModelMissingError);
});

test("while the object store does not respond, one request waits for a second and no other waits", async () => {
  const clock = new SteppedClock();
  const state = await opened(clock);
  const { fixture } = state;
  const hung = Promise.withResolvers<never>();
  state.failure = hung.promise;
  clock.advance(headAgeMsMax);
  const first = fixture.invoke("a");
  await nextTick();
  assert.equal(await fixture.invoke("a"), true);
  clock.advance(1000);
  assert.equal(await first, true);
  for (let n = 0; n < 3; n += 1) {
    clock.advance(headAgeMsMax);
    assert.equal(await fixture.invoke("a"), true);
  }
  hung.reject(unavailable());
  await nextTick();
  state.failure = null;
  fixture.put("a", 2 ** 20, "2");
  clock.advance(headAgeMsMax);
  await fixture.invoke("a");
  while (fixture.outdated.length === 0) await nextTick();
  await fixture.invoke("a");
  assert.deepEqual(fixture.targets(), ["a"]);
});

test("a model that is not known fails while the object store does not respond", async () => {
  const state = await opened(new SteppedClock());
  state.failure = Promise.reject(unavailable());
  await assert.rejects(state.fixture.invoke("b"), { code: "ServiceUnavailable" });
  assert.equal(await state.fixture.invoke("a"), true);
});
