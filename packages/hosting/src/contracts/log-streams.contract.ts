import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "@galatea/base";
import type { LogReadOptions, LogStreams } from "../logs/log-streams.ts";

export interface LogStreamsOptions {
  readonly clock: Clock;
  readonly streamBytesMax: number;
  readonly streamsMax: number;
  readonly groupsMax: number;
}

/** Log streams that are initially empty. */
export interface LogStreamsSubject extends AsyncDisposable {
  readonly logs: LogStreams;
  /** Opens the stored streams again, as a restart of the platform does. */
  again(): LogStreams | Promise<LogStreams>;
}

const group = "/aws/sagemaker/Endpoints/e";
const stream = "AllTraffic/i-1";
const startMs = Date.UTC(2026, 10, 21);
const all: LogReadOptions = { startTimeMs: null, endTimeMs: null, startFromHead: true, eventsMax: 100, token: null };

/** Registers the tests that every implementation of log streams must pass. */
export function logStreamsContract(
  name: string,
  open: (options: LogStreamsOptions) => Promise<LogStreamsSubject>,
): void {
  const opened = async (streamBytesMax = 1e6, streamsMax = 10) => {
    const clock = {
      ms: startMs,
      epochMs: () => clock.ms,
      monotonicNs: () => 0,
      timer: () => ({ [Symbol.dispose]() {} }),
    };
    const subject = await open({ clock, streamBytesMax, streamsMax, groupsMax: 3 });
    return {
      clock,
      logs: subject.logs,
      again: async () => await subject.again(),
      [Symbol.asyncDispose]: () => subject[Symbol.asyncDispose](),
    };
  };

  test(`${name}: clients cannot create groups beyond the limit, and a container's group is created regardless of it`, async () => {
    await using place = await opened();
    for (const name of ["a", "b", "c"]) await place.logs.createGroup(name);
    await assert.rejects(place.logs.createGroup("d"), {
      code: "LimitExceededException",
      message: "Resource limit exceeded: 3 log groups",
    });
    place.logs.writer("e", stream)(Buffer.from("line\n"));
    await place.logs[Symbol.asyncDispose]();
    assert.deepEqual(await (await place.again()).groupNames(""), ["a", "b", "c", "e"]);
    await place.logs.deleteGroup("a");
    await place.logs.deleteGroup("b");
    await place.logs.createGroup("d");
  });

  test(`${name}: a process's output becomes one event per line, however it is chunked, and remains after a restart`, async () => {
    await using place = await opened();
    const write = place.logs.writer(group, stream);
    const bytes = Buffer.from("first\r\nzwölf\n\nunfinished");
    for (const byte of bytes) write(Uint8Array.of(byte));
    await place.logs[Symbol.asyncDispose]();
    const page = await (await place.again()).read(group, stream, all);
    assert.deepEqual(
      page.events.map(({ message, timestampMs }) => [message, timestampMs - startMs]),
      [
        ["first", 0],
        ["zwölf", 0],
        ["", 0],
        ["unfinished", 0],
      ],
    );
    assert.deepEqual(await place.logs.groupNames("/aws/"), [group]);
    assert.deepEqual(await place.logs.streamNames(group, "All"), [stream]);
  });

  test(`${name}: a reader finds every line printed before, also in a group and stream that are still being created`, async () => {
    await using place = await opened();
    const write = place.logs.writer(group, stream);
    for (let printed = 1; printed <= 20; printed++) {
      write(Buffer.from(`line ${printed}\n`));
      // The second of two consecutive lines is queued until the append of the first has ended.
      if (printed % 2 === 0) write(Buffer.from(`more\n`));
      const count = printed + Math.floor(printed / 2);
      const [names, page] = await Promise.all([
        place.logs.streamNames(group, ""),
        place.logs.read(group, stream, { ...all }),
      ]);
      assert.deepEqual([names, page.events.length], [[stream], count]);
    }
    await place.logs[Symbol.asyncDispose]();
  });

  test(`${name}: pages are read forward and backward by token; at the end the token repeats and returns later events`, async () => {
    await using place = await opened(400);
    await place.logs.createGroup(group);
    await place.logs.createStream(group, stream);
    const put = (from: number, to: number) =>
      place.logs.append(
        group,
        stream,
        Array.from({ length: to - from }, (_, index) => ({
          timestampMs: startMs + from + index,
          message: `m${from + index}`,
        })),
      );
    for (let index = 0; index < 7; index++) await put(index, index + 1);
    const read = (more: Partial<LogReadOptions>) => place.logs.read(group, stream, { ...all, eventsMax: 3, ...more });
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

  test(`${name}: a stream over its byte limit drops its oldest lines; the number of streams in a group is limited`, async () => {
    await using place = await opened(4000, 2);
    for (const name of ["a", "b", "c"]) {
      const write = place.logs.writer(group, name);
      for (let index = 0; index < 200; index++) {
        write(Buffer.from(`${name} line ${index}\n`));
        if (index % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      await place.logs[Symbol.asyncDispose]();
    }
    const streams = await place.logs.streamNames(group, "");
    assert.equal(streams.length, 2);
    for (const name of streams) {
      const { storedBytes = Infinity } = (await place.logs.stream(group, name)) ?? {};
      assert.ok(storedBytes <= 4000, String(storedBytes));
    }
    const page = await place.logs.read(group, "c", { ...all, startFromHead: false, eventsMax: 1 });
    assert.equal(page.events[0]?.message, "c line 199");
  });

  test(`${name}: writers of one group may start concurrently, and a group deleted while they write is created again by their next lines`, async () => {
    await using place = await opened(1e6, 30);
    const writers = Array.from({ length: 20 }, (_, index) => place.logs.writer(group, `AllTraffic/i-${index}`));
    const streamCount = async () => (await place.logs.streamNames(group, "").catch(() => [])).length;
    const say = async (word: string) => {
      for (const write of writers) write(Buffer.from(`${word}\n`));
      while ((await streamCount()) < writers.length) await new Promise((resolve) => setImmediate(resolve));
    };
    await say("before");
    await place.logs.deleteGroup(group);
    await say("after");
    await place.logs[Symbol.asyncDispose]();
    for (let index = 0; index < writers.length; index++) {
      const { events } = await place.logs.read(group, `AllTraffic/i-${index}`, all);
      assert.deepEqual(events.map(({ message }) => message).at(-1), "after");
    }
    assert.deepEqual(await place.logs.groupNames(""), [group]);
  });

  test(`${name}: errors of absent and existing groups and streams have the service's codes and texts`, async () => {
    await using place = await opened();
    await assert.rejects(place.logs.streamNames(group, ""), {
      code: "ResourceNotFoundException",
      message: "The specified log group does not exist.",
    });
    await place.logs.createGroup(group);
    await assert.rejects(place.logs.read(group, stream, all), {
      code: "ResourceNotFoundException",
      message: "The specified log stream does not exist.",
    });
    await assert.rejects(place.logs.createGroup(group), { code: "ResourceAlreadyExistsException" });
  });

  test(`${name}: names of CloudWatch's maximum length, in any script, are listed, read and deleted like others`, async () => {
    await using place = await opened();
    const long = `/${"g".repeat(511)}`;
    const streams = ["日本語".repeat(100), "s".repeat(512), `${"s".repeat(511)}t`];
    await place.logs.createGroup(long);
    for (const name of streams) await place.logs.createStream(long, name);
    await place.logs.append(long, streams[0] ?? "", [{ timestampMs: startMs, message: "hello" }]);
    const again = await place.again();
    assert.deepEqual(await again.groupNames("/g"), [long]);
    assert.deepEqual(await again.streamNames(long, "s"), streams.slice(1));
    assert.equal((await again.read(long, streams[0] ?? "", all)).events[0]?.message, "hello");
    await again.deleteStream(long, streams[1] ?? "");
    assert.equal((await again.streamNames(long, "")).length, 2);
    await again.deleteGroup(long);
    assert.deepEqual(await again.groupNames(""), []);
  });

  test(`${name}: a stream name with half a surrogate pair is rejected by every operation`, async () => {
    await using place = await opened();
    await place.logs.createGroup(group);
    const refused = { code: "InvalidParameterException" };
    for (const name of ["\ud800", `${"s".repeat(500)}\udfff`]) {
      await assert.rejects(place.logs.createStream(group, name), refused);
      await assert.rejects(place.logs.read(group, name, all), refused);
      await assert.rejects(place.logs.stream(group, name), refused);
    }
  });

  test(`${name}: events older than a group's retention are not returned and take no space; a reader that continues by token misses none`, async () => {
    await using place = await opened();
    const dayMs = 86_400_000;
    await place.logs.createGroup(group);
    await place.logs.createStream(group, stream);
    const put = (timestampMs: number, message: string) => place.logs.append(group, stream, [{ timestampMs, message }]);
    const messages = async (options = all) =>
      (await place.logs.read(group, stream, options)).events.map(({ message }) => message);
    await put(place.clock.ms - 2 * dayMs, "old");
    const { forwardToken } = await place.logs.read(group, stream, all);
    await put(place.clock.ms, "new");
    assert.deepEqual(await messages(), ["old", "new"]);
    await place.logs.setRetention(group, 1);
    await place.logs.prune();
    assert.deepEqual(await messages(), ["new"]);
    place.clock.ms += 2 * dayMs;
    assert.deepEqual(await messages(), []);
    await place.logs.prune();
    assert.equal((await place.logs.stream(group, stream))?.storedBytes, 0);
    await put(place.clock.ms, "after");
    assert.deepEqual(await messages({ ...all, token: forwardToken }), ["after"]);
    await place.logs.setRetention(group, null);
    assert.deepEqual(await messages(), ["after"]);
  });

  test(`${name}: a follower gets the lines of containers and clients when they are stored, and no others`, async () => {
    await using at = await opened();
    const told: string[] = [];
    const follower = {
      wants: (group: string) => group === "g",
      receive: (_group: string, stream: string, events: readonly { readonly message: string }[]) => {
        for (const { message } of events) told.push(`${stream} ${message}`);
      },
    };
    const failing = {
      wants: () => true,
      receive: () => {
        throw new Error("a follower that fails delays no other one");
      },
    };
    const following = at.logs.follow(follower);
    using _failing = at.logs.follow(failing);
    at.logs.writer("g", "s")(Buffer.from("one\ntwo \\ \u001b[31m\n"));
    at.logs.writer("h", "s")(Buffer.from("three\n"));
    await at.logs[Symbol.asyncDispose]();
    await at.logs.append("g", "s", [{ timestampMs: 1, message: "a\nb" }]);
    assert.deepEqual(told, ["s one", "s two \\ \u001b[31m", "s a\nb"]);
    following[Symbol.dispose]();
    await at.logs.append("g", "s", [{ timestampMs: 1, message: "unheard" }]);
    assert.equal(told.length, 3);
  });
}
