import assert from "node:assert/strict";
import { test } from "node:test";
import { AwsError } from "@galatea/base";
import { LiveTails, type TailedLogs, type TailUpdate } from "./live-tail.ts";
import type { LogFollower } from "@galatea/hosting";

/** A clock that advances whenever a timer is set. */
class SteppedClock {
  nowMs = 1_000_000;
  epochMs = () => this.nowMs;
  monotonicNs = () => this.nowMs * 1e6;
  timer(delayMs: number, fire: () => void): Disposable {
    const handle = setImmediate(() => {
      this.nowMs += delayMs;
      fire();
    });
    return { [Symbol.dispose]: () => clearImmediate(handle) };
  }
}

function tails(stopping = new AbortController().signal) {
  const followers = new Set<LogFollower>();
  const store = {
    follow(follower: LogFollower): Disposable {
      followers.add(follower);
      return { [Symbol.dispose]: () => void followers.delete(follower) };
    },
  };
  const clock = new SteppedClock();
  const write = (group: string, stream: string, ...messages: readonly string[]) => {
    const events = messages.map((message) => ({ timestampMs: 5, message }));
    for (const follower of followers) if (follower.wants(group, stream)) void follower.receive(group, stream, events);
  };
  return { live: new LiveTails({ store, clock, stopping }), clock, followers, write };
}

const all: TailedLogs = { groups: new Set(["g"]), includesStream: () => true, matches: () => true };

async function first(updates: AsyncIterable<TailUpdate>): Promise<TailUpdate> {
  for await (const update of updates) return update;
  throw new Error("no update came");
}

test("a live tail session receives the matching events that are written to its groups and streams after its start", async () => {
  const { live, write, followers } = tails();
  const tailed = {
    ...all,
    includesStream: (name: string) => name === "s",
    matches: (text: string) => text.includes("a"),
  };
  const updates = live.open(tailed, new AbortController().signal);
  write("g", "s", "a", "b", "ba");
  write("g", "other", "a");
  write("h", "s", "a");
  const update = await first(updates);
  assert.deepEqual(
    update.events.map(({ group, stream, message }) => [group, stream, message]),
    [
      ["g", "s", "a"],
      ["g", "s", "ba"],
    ],
  );
  assert.equal(update.isSampled, false);
  assert.equal(followers.size, 0, "a session whose client stopped reading must not follow any group");
});

test("an update has at most 500 events and 1 MiB, and isSampled is true when events were left out", async () => {
  const { live, write } = tails();
  const updates = live.open(all, new AbortController().signal)[Symbol.asyncIterator]();
  write("g", "s", ...Array.from({ length: 501 }, String));
  const many = (await updates.next()).value as TailUpdate;
  assert.deepEqual([many.events.length, many.isSampled], [500, true]);
  write(
    "g",
    "s",
    ..."x"
      .repeat(9)
      .split("")
      .map((each) => each.repeat(250_000)),
  );
  const long = (await updates.next()).value as TailUpdate;
  assert.deepEqual([long.events.length, long.isSampled], [4, true]);
  write("g", "s", "one");
  const few = (await updates.next()).value as TailUpdate;
  assert.deepEqual([few.events.length, few.isSampled], [1, false]);
});

test("a live tail session compares at most about 4 MiB of text with its pattern each second", async () => {
  const { live, write } = tails();
  let comparedLength = 0;
  const matches = (text: string) => {
    comparedLength += text.length;
    return false;
  };
  const updates = live.open({ ...all, matches }, new AbortController().signal);
  for (let round = 0; round < 100; round++) write("g", "s", "x".repeat(256 * 1024));
  assert.equal((await first(updates)).isSampled, true);
  assert(comparedLength <= 4.25 * 1024 * 1024, `${comparedLength}`);
});

test("at most 15 live tail sessions are open; an aborted session frees its slot even if it was never read", async () => {
  const { live, followers } = tails();
  const disconnected = new AbortController();
  live.open(all, disconnected.signal);
  for (let index = 1; index < 15; index++) live.open(all, new AbortController().signal);
  assert.throws(
    () => live.open(all, new AbortController().signal),
    (error) => error instanceof AwsError && error.code === "LimitExceededException",
  );
  disconnected.abort(new Error("gone"));
  assert.equal(followers.size, 14);
  live.open(all, new AbortController().signal);
});

test("a live tail session ends with SessionTimeoutException after three hours, and with another exception when the platform stops", async () => {
  const stopping = new AbortController();
  const { live, clock } = tails(stopping.signal);
  const code = (error: unknown) => error instanceof AwsError && error.code;
  const updates = live.open(all, new AbortController().signal)[Symbol.asyncIterator]();
  await updates.next();
  clock.nowMs += 3 * 3_600_000;
  await assert.rejects(updates.next(), (error) => code(error) === "SessionTimeoutException");
  const stopped = live.open(all, new AbortController().signal)[Symbol.asyncIterator]();
  await stopped.next();
  stopping.abort();
  await assert.rejects(stopped.next(), (error) => code(error) === "SessionStreamingException");
});
