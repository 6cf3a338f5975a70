import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import * as fc from "fast-check";
import { AwsError, createLogger, silentLogger } from "@galatea/base";
import { clockWithoutTimers } from "@galatea/base/core/clock-without-timers-fixture.ts";
import { logStreamsContract } from "../../contracts/index.ts";
import type { BucketStore } from "../../objects/index.ts";
import { MemoryDocuments } from "../../records/contracts/index.ts";
import { createDirectoryLogStreams } from "../directory-log-storage.ts";
import type { LogReadOptions, LogStreams } from "../log-streams.ts";
import { chunksBucket, openChunkPlatforms } from "./chunked-logs-fixture.ts";

const group = "/aws/sagemaker/Endpoints/e";
const stream = "AllTraffic/i-1";
const startMs = Date.UTC(2026, 10, 21);
const dayMs = 86_400_000;
const all: LogReadOptions = { startTimeMs: null, endTimeMs: null, startFromHead: true, eventsMax: 1000, token: null };
/** Limits with which a segment has three to four lines of these tests, and a stream 16 segments. */
const small = { streamBytesMax: 16 * 120, streamsMax: 10, groupsMax: 10 };

for (const isStored of [false, true]) {
  const when = isStored ? "after its chunks are stored" : "before its chunks are stored";
  logStreamsContract(`a log stream ${when}`, async (options) => {
    const platforms = await openChunkPlatforms(options);
    const opened = await platforms.open();
    const logs = isStored ? storedBeforeReads(opened) : opened;
    return { logs, again: () => platforms.open(), [Symbol.asyncDispose]: () => platforms[Symbol.asyncDispose]() };
  });
}

/** Returns log streams that store all lines before each read. */
function storedBeforeReads(logs: LogStreams & { store(): Promise<void> }): LogStreams {
  const read: LogStreams["read"] = async (...args) => {
    await logs.store();
    return await logs.read(...args);
  };
  return new Proxy(logs, {
    get: (target, name) => {
      const value: unknown = name === "read" ? read : Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

async function openWorld(options: Parameters<typeof openChunkPlatforms>[1] = {}, limits = small) {
  const hand = { nowMs: startMs };
  const platforms = await openChunkPlatforms({ clock: clockWithoutTimers(() => hand.nowMs), ...limits }, options);
  return Object.assign(platforms, { hand });
}

const put = (logs: LogStreams, ...messages: readonly string[]) =>
  logs.append(
    group,
    stream,
    messages.map((message) => ({ timestampMs: startMs, message })),
  );

const messagesOf = async (logs: LogStreams, options: Partial<LogReadOptions> = {}) =>
  (await logs.read(group, stream, { ...all, ...options })).events.map(({ message }) => message);

async function withStream(logs: LogStreams): Promise<void> {
  await logs.createGroup(group);
  await logs.createStream(group, stream);
}

/** Returns a store whose calls fail while `isAway`. */
function unreliable(store: BucketStore, state: { isAway: boolean }): BucketStore {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: readonly unknown[]) => {
        if (state.isAway) return Promise.reject(new AwsError("ServiceUnavailable", "away"));
        return (value as (...args: readonly unknown[]) => unknown).apply(target, args as unknown[]);
      };
    },
  });
}

type Step =
  | { readonly do: "append" | "read" | "readBack"; readonly count: number }
  | { readonly do: "store" | "restart" | "kill" };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constantFrom("append", "read", "readBack"),
    count: fc.integer({ min: 1, max: 7 }),
  }) as fc.Arbitrary<Step>,
  fc.record({ do: fc.constantFrom("store", "restart", "kill") }) as fc.Arbitrary<Step>,
);

test("property: a reader that continues by token gets each line once and in order, across chunks, restarts and kills", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 24 }), async (steps) => {
      await using world = await openWorld({}, { ...small, streamBytesMax: 16 * 400 });
      let logs = await world.open();
      await withStream(logs);
      const written: string[] = [];
      const read: string[] = [];
      let token: string | null = null;
      const readOn = async (eventsMax: number) => {
        const page = await logs.read(group, stream, { ...all, eventsMax, token });
        read.push(...page.events.map(({ message }) => message));
        assert.deepEqual(
          page.events.map(({ id }) => id).toSorted(),
          page.events.map(({ id }) => id),
        );
        token = page.forwardToken;
        return page.events.length;
      };
      for (const each of steps) {
        if (each.do === "append") {
          const messages = Array.from({ length: each.count }, (_, index) => `m${written.length + index}`);
          await put(logs, ...messages);
          written.push(...messages);
        } else if (each.do === "read") await readOn(each.count);
        else if (each.do === "readBack") assert.deepEqual(await backward(logs, each.count), written);
        else if (each.do === "store") await logs.store();
        else {
          if (each.do === "restart") await logs[Symbol.asyncDispose]();
          logs = await world.open();
        }
      }
      while ((await readOn(3)) > 0);
      assert.deepEqual(read, written);
    }),
    { numRuns: 60 },
  );
});

/** Reads a stream from its end in pages, and returns all messages in order. */
async function backward(logs: LogStreams, eventsMax: number): Promise<readonly string[]> {
  let found: readonly string[] = [];
  for (let token: string | null = null; ;) {
    const page = await logs.read(group, stream, { ...all, startFromHead: false, eventsMax, token });
    if (page.events.length === 0) return found;
    found = [...page.events.map(({ message }) => message), ...found];
    token = page.backwardToken;
  }
}

test("a platform without the local files reads all stored lines, and continues with other segments", async () => {
  await using world = await openWorld();
  const former = await world.open("a");
  await withStream(former);
  await put(former, "one", "two");
  await former.store();
  await put(former, "three");
  const next = await world.open("b");
  const page = await next.read(group, stream, all);
  assert.deepEqual(
    page.events.map(({ message }) => message),
    ["one", "two"],
  );
  await put(next, "four");
  assert.deepEqual(await messagesOf(next, { token: page.forwardToken }), ["four"]);
  await next[Symbol.asyncDispose]();
  // The former platform starts again with its local files.
  const again = await world.open("a");
  assert.deepEqual(await messagesOf(again), ["one", "two", "three", "four"]);
  await again.store();
  assert.deepEqual(await messagesOf(await world.open("c")), ["one", "two", "three", "four"]);
});

test("SIGTERM stores all lines and leaves no local file; an object is zstd of the lines", async () => {
  await using world = await openWorld();
  const logs = await world.open();
  logs.writer(group, stream)(Buffer.from("one\nunfinished"));
  await logs[Symbol.asyncDispose]();
  assert.deepEqual(await world.files(), []);
  assert.deepEqual(await messagesOf(await world.open("b")), ["one", "unfinished"]);
  const [chunk] = world.recordsOf("log-chunk").map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  assert.deepEqual(
    { ...chunk, sha256: String(chunk?.["sha256"]).length },
    { segment: 1, firstMs: startMs, lastMs: startMs, lineCount: 2, bytes: 65, sha256: 64, isSealed: true },
  );
});

test("a kill after any write of records or objects loses no line, leaks no object, and another platform reads what was stored", async () => {
  for (let writes = 0; ; writes += 1) {
    await using world = await openWorld();
    const kill = killAfter(world.store, new MemoryDocuments(world.memory));
    const logs = await world.open("a", kill);
    await withStream(logs);
    await put(logs, "one");
    await logs.store();
    await put(logs, "two", "three", "four", "five");
    kill.after(writes);
    const outcome = await Promise.race([logs.store().then(() => "done"), kill.killed]);
    const stored = await messagesOf(await world.open("b"));
    assert.deepEqual(stored, ["one", "two", "three", "four", "five"].slice(0, stored.length), `after ${writes} writes`);
    assert.ok(stored.length >= 1);
    const again = await world.open("a");
    assert.deepEqual(await messagesOf(again), ["one", "two", "three", "four", "five"], `after ${writes} writes`);
    const recorded = new Set(world.recordsOf("log-chunk").map(({ key }) => key));
    assert.deepEqual(
      (await world.keys()).filter((key) => !recorded.has(key)),
      [],
      `after ${writes} writes`,
    );
    kill.release();
    if (outcome === "done") return assert.ok(writes >= 4, String(writes));
  }
});

/** Stops a platform before one of its writes: the write and all later ones stay pending until `release`. */
function killAfter(store: BucketStore, documents: MemoryDocuments) {
  const [killing, ending] = [Promise.withResolvers<string>(), Promise.withResolvers<never>()];
  ending.promise.catch(() => undefined);
  let left = Infinity;
  const unlessKilled = <T>(write: () => Promise<T>): Promise<T> => {
    left -= 1;
    if (left >= 0) return write();
    killing.resolve("killed");
    return ending.promise;
  };
  const write = documents.write.bind(documents);
  documents.write = (changes) => unlessKilled(() => write(changes));
  const writes = new Set<string | symbol>(["put", "delete", "createBucket"]);
  const stopped = new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      const call = value.bind(target) as (...args: readonly unknown[]) => Promise<unknown>;
      return writes.has(name) ? (...args: readonly unknown[]) => unlessKilled(() => call(...args)) : call;
    },
  });
  return {
    documents,
    store: stopped,
    killed: killing.promise,
    after: (count: number) => void (left = count),
    release: () => ending.reject(new Error("killed")),
  };
}

test("a deleted group, stream or old chunk leaves neither objects nor records nor files, also if the deletion was interrupted", async () => {
  for (const remove of [
    (logs: LogStreams) => logs.deleteGroup(group),
    (logs: LogStreams) => logs.deleteStream(group, stream),
    (logs: LogStreams) => logs.setRetention(group, 1).then(() => logs.prune()),
  ]) {
    await using world = await openWorld();
    const state = { isAway: false };
    const logs = await world.open("a", { store: unreliable(world.store, state) });
    await withStream(logs);
    await put(logs, "one", "two", "three", "four", "five");
    await logs.store();
    await put(logs, "six");
    assert.ok((await world.keys()).length >= 2);
    world.hand.nowMs += 2 * dayMs;
    state.isAway = true;
    await remove(logs).catch((error: unknown) => assert.equal((error as AwsError).code, "ServiceUnavailable"));
    state.isAway = false;
    const next = await world.open("b");
    await next.prune();
    assert.deepEqual([await world.keys(), world.recordsOf("log-chunk")], [[], []]);
    world.hand.nowMs += dayMs;
    await next.prune();
    assert.deepEqual(world.recordsOf("log-deletion"), []);
    await world.open("a");
    const files = await world.files("a");
    assert.equal(files.length, world.recordsOf("log-stream").length === 0 ? 0 : files.length);
  }
});

test("a group or stream that is created again has none of the former lines", async () => {
  await using world = await openWorld();
  const logs = await world.open();
  await withStream(logs);
  await put(logs, "old");
  await logs.store();
  await logs.deleteStream(group, stream);
  await logs.createStream(group, stream);
  assert.deepEqual(await messagesOf(logs), []);
  await put(logs, "new");
  await logs.deleteGroup(group);
  await withStream(logs);
  assert.deepEqual(await messagesOf(logs), []);
});

test("while the object store is away lines stay in local files up to a limit; then the oldest are dropped, counted and logged once", async () => {
  const said: string[] = [];
  const logger = createLogger((level, message, fields) => said.push(`${level} ${message} ${JSON.stringify(fields)}`));
  await using world = await openWorld({ logger, localBytesMax: 300 }, { ...small, streamBytesMax: 1e6 });
  const state = { isAway: true };
  const logs = await world.open("a", { store: unreliable(world.store, state) });
  await withStream(logs);
  await logs.createStream(group, "quiet");
  await logs.append(group, "quiet", [{ timestampMs: startMs, message: "oldest" }]);
  for (let index = 0; index < 5; index += 1) {
    world.hand.nowMs += 1000;
    await put(logs, `m${index}`);
    await logs.store();
  }
  assert.deepEqual(said.length, 1, said.join("\n"));
  assert.match(said[0] ?? "", /^error log lines cannot be stored; they stay in local files until the store responds/);
  await put(logs, "m".repeat(100));
  await put(logs, "last");
  assert.equal(said.length, 2, said.join("\n"));
  assert.match(said[1] ?? "", /^error log lines are lost: .* \{"bytesMax":300\}$/);
  state.isAway = false;
  await logs.store();
  assert.match(said[2] ?? "", /^info log lines are stored again \{"droppedCount":1\}$/);
  assert.deepEqual((await messagesOf(await world.open("b"))).at(-1), "last");
});

test("a damaged or lost object is skipped and logged; the other lines are readable", async () => {
  const said: string[] = [];
  await using world = await openWorld({ logger: createLogger((_, message) => said.push(message)) });
  const logs = await world.open();
  await withStream(logs);
  for (let index = 0; index < 9; index += 1) await put(logs, `m${index}`);
  await logs[Symbol.asyncDispose]();
  const [lost = "", damaged = "", ...whole] = await world.keys();
  assert.ok(whole.length > 0);
  await world.store.delete(chunksBucket, lost);
  const other = await world.store.get(chunksBucket, whole[0] ?? "");
  await world.store.put(chunksBucket, damaged, other.body, { signal: new AbortController().signal });
  const found = await messagesOf(await world.open("b"));
  assert.equal(found.at(-1), "m8");
  assert.ok(found.length < 9 && !found.includes("m0"));
  assert.deepEqual(said.filter((message) => message.includes("damaged")).length, 1);
  assert.deepEqual(said.filter((message) => message.includes("missing")).length, 1);
});

test("log files of a platform with SQLite are moved to the object store, in their order and with their retention", async () => {
  await using world = await openWorld();
  const clock = clockWithoutTimers(() => startMs);
  const files = createDirectoryLogStreams({ directory: world.localOf("a"), clock, logger: silentLogger, ...small });
  await withStream(files);
  for (let index = 0; index < 9; index += 1) await put(files, `m${index}`);
  await files.setRetention(group, 7);
  const kept = await messagesOf(files);
  const logs = await world.open("a");
  assert.deepEqual([await messagesOf(logs), await logs.retentionDays(group)], [kept, 7]);
  await put(logs, "next");
  await logs[Symbol.asyncDispose]();
  assert.deepEqual(await world.files(), []);
  assert.deepEqual(await messagesOf(await world.open("b")), [...kept, "next"]);
});

test("a line that a crash cut is skipped, and the chunk ends with the last complete line", async () => {
  await using world = await openWorld();
  const killed = await world.open();
  await withStream(killed);
  await put(killed, "one");
  const [file = ""] = await world.files();
  const path = join(world.localOf("a"), file);
  await writeFile(path, `${await readFile(path, "utf8")}2026-11-2`);
  const logs = await world.open();
  await put(logs, "two");
  await logs[Symbol.asyncDispose]();
  await rm(world.localOf("a"), { recursive: true });
  assert.deepEqual(await messagesOf(await world.open("a")), ["one", "two"]);
});
