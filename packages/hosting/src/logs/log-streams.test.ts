import assert from "node:assert/strict";
import { appendFile, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import * as fc from "fast-check";
import { silentLogger, type Clock } from "@galatea/base";
import { logStreamsContract } from "../contracts/index.ts";
import { createDirectoryLogStreams } from "./directory-log-storage.ts";
import { encodeFileName, formatLogLine, decodeFileName, parseLogLines } from "./log-lines.ts";
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

logStreamsContract("log streams in a directory", async (options) => {
  const directory = await mkdtemp(join(tmpdir(), "logs-"));
  const make = () => createDirectoryLogStreams({ directory, logger: silentLogger, ...options });
  return {
    logs: make(),
    again: make,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
});

test("a line truncated by a crash is skipped, and the next line is complete", async () => {
  await using fixture = await logs();
  await fixture.store.createGroup(group);
  await fixture.store.createStream(group, stream);
  await fixture.store.append(group, stream, [{ timestampMs: startMs, message: "one" }]);
  const [groupFile] = await readdir(fixture.directory);
  const file = join(fixture.directory, groupFile as string, "AllTraffic~i-1", "0000000001.log");
  await appendFile(file, "2026-11-2");
  await fixture.make().append(group, stream, [{ timestampMs: startMs, message: "two" }]);
  assert.deepEqual(
    (await fixture.store.read(group, stream, all)).events.map(({ message }) => message),
    ["one", "two"],
  );
  assert.match(await readFile(file, "utf8"), /^2026-11-21T00:00:00.000Z one\n/);
});

test("streams of any legal name do not collide with the group's own files", async () => {
  await using fixture = await logs(1e6, 20);
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
    await fixture.store.createGroup(each);
    for (const name of names) {
      await fixture.store.createStream(each, name);
      await fixture.store.append(each, name, [{ timestampMs: startMs, message: name }]);
    }
    await fixture.store.setRetention(each, 7);
    const again = fixture.make();
    assert.deepEqual(await again.streamNames(each, ""), names.toSorted());
    for (const name of names) assert.equal((await again.read(each, name, all)).events[0]?.message, name);
    await writeFile(join(fixture.directory, encodeFileName(each), "group.json"), "{torn");
    assert.equal((await again.group(each))?.retentionDays, null);
    for (const name of names) await again.deleteStream(each, name);
    assert.deepEqual(await again.streamNames(each, ""), []);
    assert.deepEqual((await again.groupNames("/")).includes(each), true);
  }
});

test("a damaged group description and unknown files leave the other groups readable", async () => {
  await using fixture = await logs();
  for (const name of ["a", "b"]) {
    await fixture.store.createGroup(name);
    await fixture.store.createStream(name, "s");
    await fixture.store.append(name, "s", [{ timestampMs: startMs, message: name }]);
  }
  await fixture.store.setRetention("a", 7);
  await writeFile(join(fixture.directory, "a", "group.json"), "{torn");
  await writeFile(join(fixture.directory, "stray"), "stray");
  await mkdir(join(fixture.directory, "%%nonsense"));
  const damaged = fixture.make();
  const groups = [await damaged.group("a"), await damaged.group("b")];
  assert.deepEqual(await damaged.groupNames(""), ["a", "b"]);
  assert.deepEqual(
    groups.map((each) => [each?.name, each?.retentionDays]),
    [
      ["a", null],
      ["b", null],
    ],
  );
  assert.equal((await fixture.make().read("a", "s", all)).events[0]?.message, "a");
  assert.equal((await readdir(join(fixture.directory, "a"))).filter((name) => name.includes("damaged")).length, 1);
});

test("property: any message round-trips through a line, and any name through a file name without a path", () => {
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
        const file = encodeFileName(name);
        assert.ok(!file.includes("/") && file !== "." && file !== "..");
        assert.equal(decodeFileName(file), name);
      },
    ),
  );
});
