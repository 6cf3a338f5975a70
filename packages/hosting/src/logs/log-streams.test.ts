import assert from "node:assert/strict";
import { appendFile, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import * as fc from "fast-check";
import { silentLogger, type Clock } from "@galatea/base";
import { createDirectoryLogStreams } from "./directory-log-streams.ts";
import { fileNameOf, formatLogLine, nameOfFile, parseLogLines } from "./log-lines.ts";
import type { LogReadOptions } from "./log-streams.ts";

const group = "/aws/sagemaker/Endpoints/e";
const stream = "AllTraffic/i-1";
const startMs = Date.UTC(2026, 10, 21);
const all: LogReadOptions = { startTimeMs: null, endTimeMs: null, startFromHead: true, eventsMax: 100, token: null };

async function logs(streamBytesMax = 1e6, streamsMax = 10) {
  const directory = await mkdtemp(join(tmpdir(), "logs-"));
  const hand = { nowMs: startMs };
  const clock: Clock = { epochMs: () => hand.nowMs, monotonicNs: () => 0, timer: () => ({ [Symbol.dispose]() {} }) };
  const limits = { streamBytesMax, streamsMax, groupsMax: 3 };
  const make = () => createDirectoryLogStreams({ directory, clock, logger: silentLogger, ...limits });
  return {
    directory,
    clock: hand,
    make,
    store: make(),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

test("clients make no more groups than they may, and a container's group is made all the same", async () => {
  await using place = await logs();
  for (const name of ["a", "b", "c"]) await place.store.createGroup(name);
  await assert.rejects(place.store.createGroup("d"), {
    code: "LimitExceededException",
    message: "Resource limit exceeded: 3 log groups",
  });
  place.store.writer("e", stream)(Buffer.from("line\n"));
  await place.store[Symbol.asyncDispose]();
  assert.deepEqual(await place.make().groupNames(""), ["a", "b", "c", "e"]);
  await place.store.deleteGroup("a");
  await place.store.deleteGroup("b");
  await place.store.createGroup("d");
});

test("a process's output becomes events by line, wherever its chunks are cut, and is there after a restart", async () => {
  await using place = await logs();
  const write = place.store.writer(group, stream);
  const bytes = Buffer.from("first\r\nzwölf\n\nunfinished");
  for (const byte of bytes) write(Uint8Array.of(byte));
  await place.store[Symbol.asyncDispose]();
  const page = await place.make().read(group, stream, all);
  assert.deepEqual(
    page.events.map(({ message, timestampMs }) => [message, timestampMs - startMs]),
    [
      ["first", 0],
      ["zwölf", 0],
      ["", 0],
      ["unfinished", 0],
    ],
  );
  assert.deepEqual(await place.store.groupNames("/aws/"), [group]);
  assert.deepEqual(await place.store.streamNames(group, "All"), [stream]);
});

test("who reads finds every line that was printed before, in a group and a stream that are just being made, too", async () => {
  await using place = await logs();
  const write = place.store.writer(group, stream);
  for (let printed = 1; printed <= 20; printed++) {
    write(Buffer.from(`line ${printed}\n`));
    // The second of two lines waits behind the append of the first.
    if (printed % 2 === 0) write(Buffer.from(`more\n`));
    const count = printed + Math.floor(printed / 2);
    const [names, page] = await Promise.all([
      place.store.streamNames(group, ""),
      place.store.read(group, stream, { ...all }),
    ]);
    assert.deepEqual([names, page.events.length], [[stream], count]);
  }
  await place.store[Symbol.asyncDispose]();
});

test("pages go forward and backward by token; at the end the token repeats and finds what comes later", async () => {
  await using place = await logs(400);
  await place.store.createGroup(group);
  await place.store.createStream(group, stream);
  const put = (from: number, to: number) =>
    place.store.append(
      group,
      stream,
      Array.from({ length: to - from }, (_, index) => ({
        timestampMs: startMs + from + index,
        message: `m${from + index}`,
      })),
    );
  for (let index = 0; index < 7; index++) await put(index, index + 1);
  const read = (more: Partial<LogReadOptions>) => place.store.read(group, stream, { ...all, eventsMax: 3, ...more });
  const messages = ({ events }: Awaited<ReturnType<typeof read>>) => events.map(({ message }) => message).join(" ");
  const first = await read({});
  const second = await read({ token: first.forwardToken });
  const third = await read({ token: second.forwardToken });
  const end = await read({ token: third.forwardToken });
  assert.deepEqual([first, second, third, end].map(messages), ["m0 m1 m2", "m3 m4 m5", "m6", ""]);
  assert.equal(end.forwardToken, third.forwardToken);
  await put(7, 8);
  assert.equal(messages(await read({ token: end.forwardToken })), "m7");
  const last = await read({ startFromHead: false });
  assert.equal(messages(last), "m5 m6 m7");
  assert.equal(messages(await read({ token: last.backwardToken })), "m2 m3 m4");
  assert.equal(messages(await read({ startTimeMs: startMs + 2, endTimeMs: startMs + 4 })), "m2 m3");
  await assert.rejects(read({ token: "nonsense" }), { code: "InvalidParameterException" });
});

test("a stream is bounded in bytes: the oldest lines go; a group's streams are bounded in number", async () => {
  await using place = await logs(4000, 2);
  for (const name of ["a", "b", "c"]) {
    const write = place.store.writer(group, name);
    for (let index = 0; index < 200; index++) {
      write(Buffer.from(`${name} line ${index}\n`));
      if (index % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await place.store[Symbol.asyncDispose]();
  }
  const streams = await place.store.streamNames(group, "");
  assert.equal(streams.length, 2);
  for (const name of streams) {
    const { storedBytes = Infinity } = (await place.store.stream(group, name)) ?? {};
    assert.ok(storedBytes <= 4000, String(storedBytes));
  }
  const page = await place.store.read(group, "c", { ...all, startFromHead: false, eventsMax: 1 });
  assert.equal(page.events[0]?.message, "c line 199");
});

test("a line that a crash cut short is passed over, and the next line is whole", async () => {
  await using place = await logs();
  await place.store.createGroup(group);
  await place.store.createStream(group, stream);
  await place.store.append(group, stream, [{ timestampMs: startMs, message: "one" }]);
  const [groupFile] = await readdir(place.directory);
  const file = join(place.directory, groupFile as string, "AllTraffic~i-1", "0000000001.log");
  await appendFile(file, "2026-11-2");
  await place.make().append(group, stream, [{ timestampMs: startMs, message: "two" }]);
  assert.deepEqual(
    (await place.store.read(group, stream, all)).events.map(({ message }) => message),
    ["one", "two"],
  );
  assert.match(await readFile(file, "utf8"), /^2026-11-21T00:00:00.000Z one\n/);
});

test("writers of one group may begin at once, and a group that is deleted while they write comes back with what follows", async () => {
  await using place = await logs(1e6, 30);
  const writers = Array.from({ length: 20 }, (_, index) => place.store.writer(group, `AllTraffic/i-${index}`));
  const streamCount = async () => (await place.store.streamNames(group, "").catch(() => [])).length;
  const say = async (word: string) => {
    for (const write of writers) write(Buffer.from(`${word}\n`));
    while ((await streamCount()) < writers.length) await new Promise((resolve) => setImmediate(resolve));
  };
  await say("before");
  await place.store.deleteGroup(group);
  await say("after");
  await place.store[Symbol.asyncDispose]();
  for (let index = 0; index < writers.length; index++) {
    const { events } = await place.store.read(group, `AllTraffic/i-${index}`, all);
    assert.deepEqual(events.map(({ message }) => message).at(-1), "after");
  }
  assert.deepEqual(await place.store.groupNames(""), [group]);
});

test("what does not exist has the service's own texts", async () => {
  await using place = await logs();
  await assert.rejects(place.store.streamNames(group, ""), {
    code: "ResourceNotFoundException",
    message: "The specified log group does not exist.",
  });
  await place.store.createGroup(group);
  await assert.rejects(place.store.read(group, stream, all), {
    code: "ResourceNotFoundException",
    message: "The specified log stream does not exist.",
  });
  await assert.rejects(place.store.createGroup(group), { code: "ResourceAlreadyExistsException" });
});

test("names of CloudWatch's greatest length, in any script, are listed, read and deleted like others", async () => {
  await using place = await logs();
  const long = `/${"g".repeat(511)}`;
  const streams = ["日本語".repeat(100), "s".repeat(512), `${"s".repeat(511)}t`];
  await place.store.createGroup(long);
  for (const name of streams) await place.store.createStream(long, name);
  await place.store.append(long, streams[0] ?? "", [{ timestampMs: startMs, message: "hello" }]);
  const again = place.make();
  assert.deepEqual(await again.groupNames("/g"), [long]);
  assert.deepEqual(await again.streamNames(long, "s"), streams.slice(1));
  assert.equal((await again.read(long, streams[0] ?? "", all)).events[0]?.message, "hello");
  await again.deleteStream(long, streams[1] ?? "");
  assert.equal((await again.streamNames(long, "")).length, 2);
  await again.deleteGroup(long);
  assert.deepEqual(await readdir(place.directory), []);
});

test("streams of any legal name live beside the group's own files", async () => {
  await using place = await logs(1e6, 20);
  const long = `/${"g".repeat(511)}`;
  const names = [
    "group.json",
    "group.json.new",
    "group.json.damaged-1",
    "name",
    "%67roup.json",
    "%%",
    "%2E",
    "~",
    "..",
    ".",
    "\0",
  ];
  for (const each of [group, long]) {
    await place.store.createGroup(each);
    for (const name of names) {
      await place.store.createStream(each, name);
      await place.store.append(each, name, [{ timestampMs: startMs, message: name }]);
    }
    await place.store.setRetention(each, 7);
    const again = place.make();
    assert.deepEqual(await again.streamNames(each, ""), names.toSorted());
    for (const name of names) assert.equal((await again.read(each, name, all)).events[0]?.message, name);
    await writeFile(join(place.directory, fileNameOf(each), "group.json"), "{torn");
    assert.equal((await again.group(each))?.retentionDays, null);
    for (const name of names) await again.deleteStream(each, name);
    assert.deepEqual(await again.streamNames(each, ""), []);
    assert.deepEqual((await again.groupNames("/")).includes(each), true);
  }
});

test("half a character in the name of a stream is refused, wherever it is asked for", async () => {
  await using place = await logs();
  await place.store.createGroup(group);
  const refused = { code: "InvalidParameterException" };
  for (const name of ["\ud800", `${"s".repeat(500)}\udfff`]) {
    await assert.rejects(place.store.createStream(group, name), refused);
    await assert.rejects(place.store.read(group, name, all), refused);
    await assert.rejects(place.store.stream(group, name), refused);
  }
});

test("a damaged description of a group and files put there by nobody leave the rest readable", async () => {
  await using place = await logs();
  for (const name of ["a", "b"]) {
    await place.store.createGroup(name);
    await place.store.createStream(name, "s");
    await place.store.append(name, "s", [{ timestampMs: startMs, message: name }]);
  }
  await place.store.setRetention("a", 7);
  await writeFile(join(place.directory, "a", "group.json"), "{torn");
  await writeFile(join(place.directory, "stray"), "stray");
  await mkdir(join(place.directory, "%%nonsense"));
  const damaged = place.make();
  const groups = [await damaged.group("a"), await damaged.group("b")];
  assert.deepEqual(await damaged.groupNames(""), ["a", "b"]);
  assert.deepEqual(
    groups.map((each) => [each?.name, each?.retentionDays]),
    [
      ["a", null],
      ["b", null],
    ],
  );
  assert.equal((await place.make().read("a", "s", all)).events[0]?.message, "a");
  assert.equal((await readdir(join(place.directory, "a"))).filter((name) => name.includes("damaged")).length, 1);
});

test("property: any message comes back from a line, any name from a file name without a path in it", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (message) => {
      const [line] = parseLogLines(Buffer.from(formatLogLine(startMs, message)), { segment: 1, offset: 0 });
      assert.deepEqual([line?.message, line?.timestampMs], [message, startMs]);
    }),
  );
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: "grapheme", minLength: 1 }), fc.constantFrom("..", ".", "../../x", "a~b")),
      (name) => {
        const file = fileNameOf(name);
        assert.ok(!file.includes("/") && file !== "." && file !== "..");
        assert.equal(nameOfFile(file), name);
      },
    ),
  );
});

test("what is older than a group's retention is not read, and its files go; who follows the stream misses nothing", async () => {
  await using place = await logs();
  const dayMs = 86_400_000;
  await place.store.createGroup(group);
  await place.store.createStream(group, stream);
  const put = (timestampMs: number, message: string) => place.store.append(group, stream, [{ timestampMs, message }]);
  const messages = async (options = all) =>
    (await place.store.read(group, stream, options)).events.map(({ message }) => message);
  await put(place.clock.nowMs - 2 * dayMs, "old");
  const { forwardToken } = await place.store.read(group, stream, all);
  await put(place.clock.nowMs, "new");
  assert.deepEqual(await messages(), ["old", "new"]);
  await place.store.setRetention(group, 1);
  await place.store.prune();
  assert.deepEqual(await messages(), ["new"]);
  place.clock.nowMs += 2 * dayMs;
  assert.deepEqual(await messages(), []);
  await place.store.prune();
  assert.equal((await place.store.stream(group, stream))?.storedBytes, 0);
  await put(place.clock.nowMs, "after");
  assert.deepEqual(await messages({ ...all, token: forwardToken }), ["after"]);
  await place.store.setRetention(group, null);
  assert.deepEqual(await messages(), ["after"]);
});

test("who follows is told of the lines of containers and clients when they are in the file, and of no others", async () => {
  await using at = await logs();
  const told: string[] = [];
  const follower = {
    wants: (group: string) => group === "g",
    take: (_group: string, stream: string, events: readonly { readonly message: string }[]) => {
      for (const { message } of events) told.push(`${stream} ${message}`);
    },
  };
  const failing = {
    wants: () => true,
    take: () => {
      throw new Error("a follower that fails holds nobody up");
    },
  };
  const following = at.store.follow(follower);
  using _failing = at.store.follow(failing);
  at.store.writer("g", "s")(Buffer.from("one\ntwo \\ \u001b[31m\n"));
  at.store.writer("h", "s")(Buffer.from("three\n"));
  await at.store[Symbol.asyncDispose]();
  await at.store.append("g", "s", [{ timestampMs: 1, message: "a\nb" }]);
  assert.deepEqual(told, ["s one", "s two \\ \u001b[31m", "s a\nb"]);
  following[Symbol.dispose]();
  await at.store.append("g", "s", [{ timestampMs: 1, message: "unheard" }]);
  assert.equal(told.length, 3);
});
