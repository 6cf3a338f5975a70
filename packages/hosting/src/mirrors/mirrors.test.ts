import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { test } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { createLogger } from "@galatea/base";
import { SteppedClock } from "@galatea/base/core/stepped-clock-fixture.ts";
import type { ObjectStore } from "../objects/index.ts";
import type { InvocationReply, InvocationRequest } from "../invocations/index.ts";
import { MirroredCalls } from "./mirrored-calls.ts";
import { captureSettings } from "./capture-settings.ts";
import { Mirrors, type MirroringLimits } from "./mirrors.ts";
import { ShadowCalls } from "./shadow-calls.ts";

type Put = ObjectStore["put"];

/** Mirrors with an in-memory object store. Tests may replace `put`. */
class Bench implements AsyncDisposable {
  readonly clock = new SteppedClock();
  readonly objects = new Map<string, string>();
  readonly logged: string[] = [];
  readonly mirrors: Mirrors;
  readonly share;
  put: Put = async (bucket, key, body) => {
    this.objects.set(`${bucket}/${key}`, await text(body));
    return undefined as never;
  };

  constructor(limits: MirroringLimits = {}, chance = 0) {
    let count = 0;
    this.mirrors = new Mirrors({
      store: { put: (...args) => this.put(...args) },
      requestBytesMax: 2 ** 30,
      clock: this.clock,
      logger: createLogger((_level, message) => this.logged.push(message)),
      random: () => chance,
      newId: () => `id-${(count += 1)}`,
      limits,
    });
    this.share = this.mirrors.account.share("e");
  }

  watch(request: ((request: InvocationRequest) => Promise<InvocationReply>) | null, percentage = 100): MirroredCalls {
    const { clock, share, mirrors } = this;
    const { random, newId, logger } = mirrors.options;
    const calls =
      request === null
        ? null
        : new ShadowCalls({ invoke: request, share, clock, logger, callsMax: 3, responseBytesPerSecond: 1e6 });
    const settings = captureSettings({
      InitialSamplingPercentage: percentage,
      DestinationS3Uri: "s3://kept/there/",
      CaptureOptions: [{ CaptureMode: "InputAndOutput" }],
      CaptureContentTypeHeader: { CsvContentTypes: ["text/csv"] },
    });
    const shadow = calls === null ? null : { calls, variantName: "shadow", part: 1 };
    return new MirroredCalls({
      share,
      variantName: "v",
      settings,
      writer: mirrors.captures,
      shadow,
      clock,
      random,
      newId,
    });
  }

  /** Returns each file's name with the data of its records. */
  data(): readonly (readonly [string, ...string[]])[] {
    return [...this.objects].map(([key, lines]) => [key, ...lines.trim().split("\n").flatMap(dataOf)]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.mirrors[Symbol.asyncDispose]();
  }
}

function dataOf(line: string): string[] {
  const { captureData } = JSON.parse(line) as { captureData: Record<string, { data: string; encoding: string }> };
  return Object.values(captureData).map(({ data }) => data);
}

const never = new AbortController().signal;

function asked(body: Buffer | Readable): InvocationRequest {
  const headers = { "content-type": "text/csv", "x-amzn-sagemaker-inference-id": "i" };
  const targets = { targetModel: null, targetVariant: null, targetContainer: null, isStreamed: false };
  return {
    headers,
    ...targets,
    body: () => Promise.resolve(body),
    memory: undefined as never,
    receivedNs: 0,
    signal: never,
  };
}

const replyOf = (body: Buffer | Readable): InvocationReply => ({
  contentType: "text/csv",
  customAttributes: null,
  variantName: "v",
  body,
  byteLength: null,
  done: () => {},
  openedSession: null,
  closedSession: null,
  onStart: () => {},
  failed: (error) => error,
});

/** Responds with the request body followed by an exclamation mark. */
const echo = async (request: InvocationRequest): Promise<InvocationReply> => {
  const body = await request.body();
  return replyOf(Buffer.concat([Buffer.isBuffer(body) ? body : await buffer(body), Buffer.from("!")]));
};

const bytesOf = (count: number, letter: string) => Buffer.alloc(count, letter);

test("captured records are written 30 s after the first one, in one file for each hour", async () => {
  await using bench = new Bench();
  const watch = bench.watch(null);
  await watch.invoke(asked(Buffer.from("a")), echo);
  bench.clock.advance(19_000);
  await watch.invoke(asked(Buffer.from("b")), echo);
  bench.clock.advance(1000);
  await watch.invoke(asked(Buffer.from("c")), echo);
  assert.deepEqual(bench.data(), []);
  bench.clock.advance(10_000);
  await eventually(() => bench.objects.size === 1);
  const first = "kept/there/e/v/2026/11/22/08/59-40-005-id-2.jsonl";
  assert.deepEqual(bench.data(), [[first, "a", "a!", "b", "b!"]]);
  bench.clock.advance(20_000);
  await eventually(() => bench.objects.size === 2 && bench.mirrors.figures.callCount === 0);
  assert.deepEqual(bench.data()[1], ["kept/there/e/v/2026/11/22/09/00-00-005-id-5.jsonl", "c", "c!"]);
  assert.deepEqual(bench.mirrors.figures, { callCount: 0, bytes: 0, lost: bench.mirrors.figures.lost });
});

test("exactly the bytes that were sent are captured, also of streamed bodies, and no other bytes of their buffers are kept", async () => {
  await using bench = new Bench();
  const watch = bench.watch(null);
  const slab = Buffer.alloc(65_536, "s");
  await watch.invoke(asked(slab.subarray(10, 20)), (request) => echo(request));
  assert.ok(bench.mirrors.figures.bytes < 4096, `${bench.mirrors.figures.bytes} bytes are buffered for 21`);
  slab.fill("x");
  const streamed = Readable.from([bytesOf(70_000, "p"), bytesOf(5, "q")]);
  const reply = await watch.invoke(asked(streamed), async (request) => {
    const body = (await request.body()) as Readable;
    return replyOf(Readable.from([await buffer(body), Buffer.from("?")]));
  });
  assert.equal((await text(reply.body as Readable)).length, 70_006);
  bench.mirrors.captures.flush("e");
  await eventually(() => bench.objects.size === 1);
  const [, ...data] = bench.data()[0] ?? [""];
  const long = `${"p".repeat(70_000)}qqqqq`;
  assert.deepEqual(data, ["s".repeat(10), `${"s".repeat(10)}!`, long, `${long}?`]);
});

test("a call over the capture limit is served, not captured and counted; later calls are captured when memory is free again", async () => {
  await using bench = new Bench({ endpointBytesMax: 40_000 });
  const watch = bench.watch(null);
  for (let index = 0; index < 5; index += 1) {
    const reply = await watch.invoke(asked(bytesOf(10_000, "a")), echo);
    assert.equal((reply.body as Buffer).length, 10_001);
  }
  const { figures } = bench.mirrors;
  assert.ok(figures.bytes <= 40_000);
  assert.deepEqual([figures.callCount, figures.lost["no-room"]], [1, 4]);
  assert.equal(bench.logged.length, 1);
  bench.mirrors.captures.flush("e");
  await eventually(() => bench.mirrors.figures.bytes === 0);
  await watch.invoke(asked(bytesOf(10_000, "b")), echo);
  assert.equal(bench.mirrors.figures.callCount, 1);
});

test("a response without end is passed on, and its captured copy is dropped at the limit", async () => {
  await using bench = new Bench();
  const endless = new Readable({ read() {} });
  const reply = await bench.watch(null).invoke(asked(Buffer.from("a")), () => Promise.resolve(replyOf(endless)));
  let passedBytes = 0;
  const acquired = reply.body as Readable;
  acquired.on("data", (chunk: Buffer) => (passedBytes += chunk.length));
  for (let index = 1; index <= 20; index += 1) {
    endless.push(bytesOf(2 ** 20, "e"));
    await eventually(() => passedBytes === index * 2 ** 20);
    assert.ok(bench.mirrors.figures.bytes < 9 * 2 ** 20);
  }
  assert.ok(bench.mirrors.figures.bytes < 4096);
  endless.push(null);
  await eventually(() => bench.mirrors.figures.callCount === 0);
  assert.equal(bench.mirrors.figures.lost["no-room"], 1);
});

test("a body or response that breaks off is not captured, and the caller sees the same error as without capture", async () => {
  await using bench = new Bench();
  const watch = bench.watch(null);
  const broken = new Readable({ read() {} });
  broken.push("half");
  const failing = watch.invoke(asked(broken), echo);
  setImmediate(() => broken.destroy(new Error("the client disconnected")));
  await assert.rejects(failing, /the client disconnected/);
  const result = new Readable({ read() {} });
  const reply = await watch.invoke(asked(Buffer.from("x")), () => Promise.resolve(replyOf(result)));
  (reply.body as Readable).destroy();
  await eventually(() => result.destroyed && bench.mirrors.figures.callCount === 0);
  assert.equal(bench.mirrors.figures.lost["cut-short"], 1);
});

test("the rest of a request that its container did not read is consumed, so that the connection can be reused", async () => {
  await using bench = new Bench();
  const chunks = [bytesOf(60_000, "a"), bytesOf(60_000, "b"), bytesOf(60_000, "c")];
  const body = new Readable({ read: () => void body.push(chunks.shift() ?? null) });
  const refusing = async (request: InvocationRequest): Promise<never> => {
    const acquired = (await request.body()) as Readable;
    await new Promise((resolve) => acquired.once("data", resolve));
    acquired.destroy();
    throw new Error("too long");
  };
  await assert.rejects(bench.watch(null).invoke(asked(body), refusing), /too long/);
  await eventually(() => body.readableEnded && bench.mirrors.figures.callCount === 0);
});

test("a captured record is in a file within a minute, so that a kill -9 loses at most one minute", async () => {
  await using bench = new Bench({ fileCallsMax: 40 });
  const watch = bench.watch(null);
  const { put, clock } = bench;
  // Each write to the store lasts 20 s.
  bench.put = async (bucket, key, body, options) => {
    await new Promise<void>((resolve) => void clock.timer(20_000, resolve));
    return await put(bucket, key, body, options);
  };
  const endedMs: number[] = [];
  let oldestMs = 0;
  for (let second = 0; second < 600; second += 1) {
    // Bursts fill files; between bursts, a file has one record.
    const calls = second % 60 < 20 ? 3 : second % 7 === 0 ? 1 : 0;
    for (let call = 0; call < calls; call += 1) {
      await watch.invoke(asked(Buffer.from(String(endedMs.length))), echo);
      endedMs.push(clock.epochMs());
    }
    clock.advance(1000);
    for (let tick = 0; tick < 20; tick += 1) await new Promise((resolve) => void setImmediate(resolve));
    const kept = new Set(bench.data().flatMap(([, ...data]) => data));
    for (const [index, ms] of endedMs.entries()) {
      if (!kept.has(String(index))) oldestMs = Math.max(oldestMs, clock.epochMs() - ms);
    }
  }
  await eventually(() => {
    clock.advance(1000);
    return bench.mirrors.figures.callCount === 0;
  });
  assert.ok(oldestMs > 40_000 && oldestMs <= 60_000, String(oldestMs));
});

test("captured records stay buffered within their limit while the disk is full, and are written later", async () => {
  await using bench = new Bench({ endpointBytesMax: 40_000 });
  const watch = bench.watch(null);
  const { put } = bench;
  let tried = 0;
  bench.put = async (_bucket, _key, body) => {
    tried += 1;
    body.destroy();
    throw new Error("no space left on device");
  };
  for (let index = 0; index < 4; index += 1) {
    await watch.invoke(asked(bytesOf(10_000, "a")), echo);
    bench.clock.advance(30_000);
    await eventually(() => tried > 0);
  }
  assert.deepEqual([bench.objects.size, bench.mirrors.figures.lost["no-room"]], [0, 3]);
  assert.equal(bench.logged.filter((line) => line.includes("cannot be written")).length, 1);
  bench.put = put;
  await eventually(() => {
    bench.clock.advance(5000);
    return bench.objects.size === 1 && bench.mirrors.figures.bytes === 0;
  });
});

test("records that cannot be written are dropped after the time limit, and a shutdown tries once", async () => {
  const bench = new Bench({ triedMsMax: 60_000 });
  const watch = bench.watch(null);
  bench.put = () => Promise.reject(new Error("there is no such bucket"));
  await watch.invoke(asked(Buffer.from("a")), echo);
  await eventually(() => {
    bench.clock.advance(5000);
    return bench.mirrors.figures.bytes === 0;
  });
  assert.equal(bench.mirrors.figures.lost["not-written"], 1);
  await watch.invoke(asked(Buffer.from("b")), echo);
  await bench[Symbol.asyncDispose]();
  assert.deepEqual([bench.mirrors.figures.lost["not-written"], bench.mirrors.figures.bytes], [2, 0]);
});

test("a request is captured with the probability of the sampling percentage", async () => {
  for (const [chance, callCount] of [
    [0.24, 1],
    [0.25, 0],
  ] as const) {
    await using bench = new Bench({}, chance);
    await bench.watch(null, 25).invoke(asked(Buffer.from("a")), echo);
    assert.equal(bench.mirrors.figures.callCount, callCount);
  }
});

test("the shadow gets the caller's request; its response is captured under its own name and not returned", async () => {
  await using bench = new Bench();
  const received: string[] = [];
  const watch = bench.watch(async (request) => {
    const body = await request.body();
    received.push((body as Buffer).toString(), request.headers["content-type"] ?? "");
    return replyOf(Readable.from([Buffer.from("sha"), Buffer.from("dow")]));
  });
  const reply = await watch.invoke(asked(Buffer.from("a")), echo);
  assert.equal((reply.body as Buffer).toString(), "a!");
  await eventually(() => {
    bench.mirrors.captures.flush("e");
    return bench.objects.size === 2;
  });
  assert.deepEqual(received, ["a", "text/csv"]);
  assert.deepEqual(
    bench.data().map(([key, ...data]) => [key.split("/")[3], ...data]),
    [
      ["v", "a", "a!"],
      ["shadow", "a", "shadow"],
    ],
  );
});

test("a failed invocation is not captured and not counted as lost, and the shadow still gets the request", async () => {
  await using bench = new Bench();
  let shadowCount = 0;
  const watch = bench.watch(async (request) => {
    await request.body();
    shadowCount += 1;
    throw new Error("the shadow's model responds with 500");
  });
  for (const status of [400, 500]) {
    const failing = watch.invoke(asked(Readable.from([Buffer.from("a"), Buffer.from("b")])), async (request) => {
      await buffer((await request.body()) as Readable);
      throw new Error(`the model responds with ${status}`);
    });
    await assert.rejects(failing, { message: `the model responds with ${status}` });
  }
  await eventually(() => shadowCount === 2 && bench.mirrors.figures.callCount === 0);
  await bench[Symbol.asyncDispose]();
  assert.equal(bench.objects.size, 0);
  const { bytes, lost } = bench.mirrors.figures;
  assert.deepEqual([bytes, Object.values(lost)], [0, [0, 0, 0, 0]]);
});

test("a shadow that hangs, fails or never stops responding does not affect callers, and its calls and bytes are limited", async () => {
  await using bench = new Bench();
  const endless = new Readable({ read() {} });
  const outcomes = [
    () => new Promise<never>(() => {}),
    () => Promise.resolve(replyOf(endless)),
    () => Promise.reject(new Error("the shadow was removed")),
    () => new Promise<never>(() => {}),
  ];
  const hanging = new Set<AbortSignal>();
  const { clock, share } = bench;
  const calls = new ShadowCalls({
    invoke: (request) => {
      hanging.add(request.signal);
      const outcome = outcomes.shift();
      assert.ok(outcome !== undefined);
      return new Promise((resolve, reject) => {
        request.signal.addEventListener("abort", () => reject(request.signal.reason as Error));
        outcome().then(resolve, reject);
      });
    },
    share,
    clock,
    logger: bench.mirrors.options.logger,
    callsMax: 3,
    responseBytesPerSecond: 1e6,
  });
  const { random, newId } = bench.mirrors.options;
  const shadow = { calls, variantName: "shadow", part: 1 };
  const parts = { share, variantName: "v", settings: null, writer: bench.mirrors.captures, clock, random, newId };
  const watch = new MirroredCalls({ ...parts, shadow });
  for (let index = 0; index < 3; index += 1) await watch.invoke(asked(Buffer.from("a")), echo);
  await eventually(() => outcomes.length === 1 && bench.mirrors.figures.callCount === 2);
  // The failed call freed its slot, so one more is sent.
  for (let index = 0; index < 5; index += 1) await watch.invoke(asked(Buffer.from("a")), echo);
  assert.deepEqual([bench.mirrors.figures.callCount, bench.mirrors.figures.lost["shadow-busy"]], [3, 4]);
  await eventually(() => outcomes.length === 0);
  await calls[Symbol.asyncDispose]();
  assert.equal(hanging.size, 4);
  assert.equal(endless.destroyed, true);
  assert.deepEqual([bench.mirrors.figures.callCount, bench.mirrors.figures.bytes], [0, 0]);
});
