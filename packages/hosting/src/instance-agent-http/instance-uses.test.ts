import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "node:test";
import { systemClock } from "@galatea/base";
import { InstanceUses } from "./instance-uses.ts";

const never = new AbortController().signal;

test("a drain waits for requests of other clients, and not for those of the client that deletes", async () => {
  const uses = new InstanceUses(systemClock);
  uses.begin("i", "platform");
  uses.begin("other", "gateway");
  const [first, second] = [uses.begin("i", "gateway"), uses.begin("i", "gateway")];
  let isDrained = false;
  const drained = uses.drain("i", "platform", never).then((ending) => {
    isDrained = true;
    return ending;
  });
  assert.ok(uses.isEnding("i"));
  assert.ok(!uses.isEnding("other"));
  first[Symbol.dispose]();
  await turn();
  assert.ok(!isDrained);
  second[Symbol.dispose]();
  (await drained)[Symbol.dispose]();
  assert.ok(!uses.isEnding("i"));
});

test("after a drain that is cancelled, the instance gets requests again", async () => {
  const uses = new InstanceUses(systemClock);
  uses.begin("i", "gateway");
  const cancelled = new AbortController();
  const drained = uses.drain("i", "platform", cancelled.signal);
  cancelled.abort(new Error("the platform has disconnected"));
  await assert.rejects(drained, /the platform has disconnected/);
  assert.ok(!uses.isEnding("i"));
});
