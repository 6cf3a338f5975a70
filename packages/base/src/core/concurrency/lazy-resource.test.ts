import assert from "node:assert/strict";
import { test } from "node:test";
import { LazyResource } from "./lazy-resource.ts";

test("a resource is opened once, by its first user, and closed once", async () => {
  const events: string[] = [];
  const lazy = new LazyResource(async () => {
    events.push("open");
    return { [Symbol.asyncDispose]: async () => void events.push("close") };
  });
  assert.equal(lazy.opened, null);
  assert.equal(await lazy.get(), await lazy.get());
  await lazy[Symbol.asyncDispose]();
  assert.deepEqual(events, ["open", "close"]);
  await assert.rejects(lazy.get(), /the resource is closed/);
});

test("a resource without users is never opened", async () => {
  await new LazyResource<Disposable>(() => assert.fail("opened"))[Symbol.asyncDispose]();
});

test("after a failed opening the next user opens the resource again", async () => {
  let attempts = 0;
  const lazy = new LazyResource<Disposable>(async () => {
    attempts += 1;
    if (attempts === 1) throw new Error("no file");
    return { [Symbol.dispose]() {} };
  });
  await assert.rejects(lazy.get(), /no file/);
  assert.equal(lazy.opened, null);
  await lazy.get();
  await lazy[Symbol.asyncDispose]();
  assert.equal(attempts, 2);
});
