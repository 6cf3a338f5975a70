import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, constants, type ClientHttp2Session } from "node:http2";
import { connect as connectTcp } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { gzipSync } from "node:zlib";
import { create, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { ByteBudget, systemClock, type Clock, type Logger } from "@galatea/base";
import { FakeEngine } from "../fake-engine.ts";
import { addUsualModels } from "../fake-models.ts";
import { connectOverMessages, type MessageConnectedEngine } from "../engine-messages/connect-over-messages.ts";
import { defaultGrpcLimits } from "../grpc-listener/index.ts";
import { usualKeepalive } from "../grpc-listener/keepalive-fixture.ts";
import type { Listener } from "../listener.ts";
import { callGrpc, frameMessage, type GrpcReply } from "../raw-grpc-client.ts";
import {
  ModelInferRequestSchema,
  ModelInferResponseSchema,
  ModelStreamInferResponseSchema,
} from "./gen/grpc_service_pb.js";
import { openKserveGrpc, type KserveGrpcOptions } from "./index.ts";
import { eventually, testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { ManualTimersClock } from "@galatea/base/core/manual-timers-fixture.ts";

const silent: Logger = { verbose: () => {}, info: () => {}, warning: () => {}, error: () => {} };
const inferPath = "/inference.GRPCInferenceService/ModelInfer";
const streamPath = "/inference.GRPCInferenceService/ModelStreamInfer";

let engine: FakeEngine;
let remote: MessageConnectedEngine;
const budget = new ByteBudget(2 ** 30);
let listener: Listener;
/** Pending calls of the model `held`. */
let held: { signal: AbortSignal; respond: () => void }[] = [];

function options(more: Partial<KserveGrpcOptions> = {}): KserveGrpcOptions {
  return {
    engine: remote.engine,
    address: { host: "127.0.0.1", port: 0 },
    limits: defaultGrpcLimits,
    keepalive: usualKeepalive,
    compressionLevel: "none",
    tls: null,
    clock: systemClock,
    budget,
    logger: silent,
    restrictions: new Map(),
    forwardedHeaders: null,
    ...more,
  };
}

before(async () => {
  engine = new FakeEngine(2 ** 28);
  remote = connectOverMessages(engine);
  addUsualModels(engine);
  engine.add("held", {
    inputs: { IN: ["FP32", [-1]] },
    outputs: {},
    run: (request) =>
      new Promise((resolve) => {
        held.push({ signal: request.signal!, respond: () => resolve([]) });
      }),
  });
  listener = await openKserveGrpc(options());
});
after(async () => {
  await listener.close(AbortSignal.abort());
  assert.equal(budget.usedBytes, 0);
  assert.equal(engine.openCount, 0);
  assert.equal(remote.openCount, 0);
});
beforeEach(() => {
  held = [];
});

/** Resolves when `count` calls of `held` are pending. */
async function heldCalls(count: number): Promise<void> {
  await eventually(() => held.length >= count);
}

/** Returns FP32 numbers in ascending order, which compress well. */
const many = (count: number) => new Uint8Array(Float32Array.from({ length: count }, (_, index) => index >> 8).buffer);
const floats = (...values: number[]) => new Uint8Array(new Float32Array(values).buffer);

function message(init: MessageInitShape<typeof ModelInferRequestSchema>): Uint8Array {
  return toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, init));
}

const identity = (data: Uint8Array, modelName = "id_fp32", id = "") =>
  message({
    modelName,
    id,
    inputs: [{ name: "IN", datatype: "FP32", shape: [BigInt(data.length / 4)] }],
    rawInputContents: [data],
  });

function call(body: Uint8Array, more: { path?: string; metadata?: Record<string, string>; port?: number } = {}) {
  const { path = inferPath, metadata = {}, port = listener.port } = more;
  return callGrpc(port, { path, metadata, body, timeoutMs: testTimeoutMs });
}

const infer = (reply: GrpcReply) => fromBinary(ModelInferResponseSchema, reply.messages[0]!);

function open(session: ClientHttp2Session, path = inferPath, metadata: Record<string, string> = {}) {
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...metadata,
  });
  stream.on("error", () => {});
  return stream;
}

test("an inference is answered, and all of its memory is released", async () => {
  const reply = await call(frameMessage(identity(floats(1, 2, 3))));
  assert.equal(reply.status, 0);
  assert.deepEqual(Buffer.from(infer(reply).rawOutputContents[0]!), Buffer.from(floats(1, 2, 3)));
  assert.equal(engine.arena.usedBytes, 0);
});

test("a tensor of many frames goes through unchanged", async () => {
  const data = many(2_000_000);
  const reply = await call(frameMessage(identity(data)));
  assert.equal(Buffer.compare(infer(reply).rawOutputContents[0]!, data), 0);
  assert.equal(engine.arena.usedBytes, 0);
});

test("a compressed message is decompressed; one that exceeds the limit is rejected, and its memory released", async () => {
  const data = many(100_000);
  const packed = frameMessage(gzipSync(identity(data)));
  packed[0] = 1;
  const reply = await call(packed, { metadata: { "grpc-encoding": "gzip" } });
  assert.equal(reply.status, 0, reply.message);
  const small = await openKserveGrpc(options({ limits: { ...defaultGrpcLimits, messageBytesMax: 100_000 } }));
  const refused = await call(packed, { metadata: { "grpc-encoding": "gzip" }, port: small.port });
  assert.deepEqual([refused.status, refused.message.slice(0, 34)], [8, "Received message larger than max ("]);
  await small.close(AbortSignal.abort());
  assert.equal(engine.arena.usedBytes, 0);
});

test("messages that exceed the memory budget are rejected: permanently if they can never fit, else until memory is free", async () => {
  const narrow = new ByteBudget(2 ** 20);
  const tight = await openKserveGrpc(options({ budget: narrow }));
  // The fake engine's arena is not charged to this budget, so only buffered messages count.
  const typed = message({
    modelName: "id_fp32",
    inputs: [{ name: "IN", datatype: "FP32", shape: [500_000n], contents: { fp32Contents: Array(500_000).fill(1) } }],
  });
  const exceeded = await call(frameMessage(typed), { port: tight.port });
  assert.deepEqual([exceeded.status, /exceed the memory for all requests/.test(exceeded.message)], [8, true]);
  narrow.reserve(900_000);
  const smaller = message({
    modelName: "id_fp32",
    inputs: [{ name: "IN", datatype: "FP32", shape: [50_000n], contents: { fp32Contents: Array(50_000).fill(1) } }],
  });
  const full = await call(frameMessage(smaller), { port: tight.port });
  assert.deepEqual([full.status, /memory for requests in flight is full/.test(full.message)], [14, true]);
  narrow.release(900_000);
  assert.equal((await call(frameMessage(smaller), { port: tight.port })).status, 0);
  const bomb = frameMessage(gzipSync(new Uint8Array(50_000_000)));
  bomb[0] = 1;
  const bombed = await call(bomb, { port: tight.port, metadata: { "grpc-encoding": "gzip" } });
  assert.equal(bombed.status === 8 || bombed.status === 14, true, bombed.message);
  await tight.close(AbortSignal.abort());
  assert.equal(narrow.usedBytes, 0);
});

test("a response is compressed if the server is configured to and the client accepts it", async () => {
  const compressing = await openKserveGrpc(options({ compressionLevel: "low" }));
  const session = connect(`http://127.0.0.1:${compressing.port}`);
  const stream = open(session, inferPath, { "grpc-accept-encoding": "gzip" });
  const headers = once(stream, "response");
  stream.end(frameMessage(identity(many(10_000))));
  const [first] = (await once(stream, "data")) as [Buffer];
  assert.equal(((await headers)[0] as Record<string, string>)["grpc-encoding"], "gzip");
  assert.equal(first[0], 1);
  session.destroy();
  await compressing.close(AbortSignal.abort());
});

test("a client that cancels aborts its request, also in the middle of its message", async () => {
  const session = connect(`http://127.0.0.1:${listener.port}`);
  const stream = open(session);
  stream.end(frameMessage(identity(floats(1), "held")));
  await heldCalls(1);
  const aborted = once(held[0]!.signal, "abort");
  stream.close(constants.NGHTTP2_CANCEL);
  await aborted;
  held[0]!.respond();
  const half = open(session);
  const complete = frameMessage(identity(many(500_000)));
  half.write(complete.subarray(0, 1_500_000));
  await eventually(() => engine.arena.usedBytes > 0);
  half.close(constants.NGHTTP2_CANCEL);
  await eventually(() => engine.arena.usedBytes === 0);
  session.destroy();
});

test("a deadline that passes is the status of the call, and ends the request", async () => {
  const response = call(frameMessage(identity(floats(1), "held")), { metadata: { "grpc-timeout": "500m" } });
  const reply = await response;
  assert.deepEqual([reply.status, reply.message], [4, "Deadline Exceeded"]);
  assert.equal(held[0]?.signal.aborted, true);
  held[0]?.respond();
});

test("a call that has ended keeps no timer, however far its deadline is", async () => {
  const timers = new Set<object>();
  const timer: Clock["timer"] = (delayMs, fire) => {
    const handle = systemClock.timer(delayMs, () => {
      timers.delete(handle);
      fire();
    });
    timers.add(handle);
    return {
      [Symbol.dispose]: () => {
        timers.delete(handle);
        handle[Symbol.dispose]();
      },
    };
  };
  const timed = await openKserveGrpc(options({ clock: { ...systemClock, timer } }));
  const metadata = { "grpc-timeout": "99999999H" };
  const waiting = call(frameMessage(identity(floats(1), "held")), { metadata, port: timed.port });
  await heldCalls(1);
  assert.ok(timers.size > 0);
  held[0]!.respond();
  assert.equal((await waiting).status, 0);
  await eventually(() => timers.size === 0);
  await timed.close(AbortSignal.abort());
});

test("responses of a stream keep the order of their requests", async () => {
  const session = connect(`http://127.0.0.1:${listener.port}`);
  const stream = open(session, streamPath);
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  stream.write(frameMessage(identity(floats(1), "held", "slow")));
  stream.end(frameMessage(identity(floats(2), "id_fp32", "quick")));
  await heldCalls(1);
  held[0]!.respond();
  await once(stream, "end");
  const ids: string[] = [];
  const bytes = Buffer.concat(chunks);
  for (let at = 0; at < bytes.length; at += 5 + bytes.readUInt32BE(at + 1)) {
    const each = bytes.subarray(at + 5, at + 5 + bytes.readUInt32BE(at + 1));
    ids.push(fromBinary(ModelStreamInferResponseSchema, each).inferResponse?.id ?? "");
  }
  assert.deepEqual(ids, ["slow", "quick"]);
  session.destroy();
});

test("a stream reads no more requests than may run at once, and continues when some are answered", async () => {
  const session = connect(`http://127.0.0.1:${listener.port}`, { maxSessionMemory: 1000 });
  const stream = open(session, streamPath);
  stream.resume();
  const one = frameMessage(identity(many(10_000), "held"));
  const sent = 600;
  for (let count = 0; count < sent; count++) stream.write(one);
  stream.end();
  await heldCalls(256);
  // The other requests wait at the client or in its flow control window. The server has decoded none of them.
  assert.ok(engine.arena.usedBytes < 300 * one.length, `${engine.arena.usedBytes} bytes`);
  assert.ok(held.length <= 256 + defaultGrpcLimits.callWindowBytes / one.length);
  let responseCount = 0;
  while (responseCount < sent) {
    await heldCalls(responseCount + 1);
    held[responseCount++]!.respond();
  }
  await once(stream, "close");
  assert.equal(engine.arena.usedBytes, 0);
  session.destroy();
});

test("a client that reads nothing blocks only its own stream", async () => {
  const session = connect(`http://127.0.0.1:${listener.port}`);
  const stream = open(session, streamPath);
  stream.pause();
  const large = frameMessage(identity(many(250_000)));
  for (let count = 0; count < 64; count++) stream.write(large);
  await eventually(() => engine.arena.usedBytes > 0);
  assert.equal((await call(frameMessage(identity(floats(5))))).status, 0);
  session.destroy();
  await eventually(() => engine.arena.usedBytes === 0);
});

test("a restricted protocol accepts only calls with its metadata", async () => {
  const restrictions = new Map([["inference" as const, { header: "triton-grpc-protocol-key", value: "secret" }]]);
  const guarded = await openKserveGrpc(options({ restrictions }));
  const body = frameMessage(identity(floats(1)));
  const refused = await call(body, { port: guarded.port });
  assert.deepEqual(
    [refused.status, refused.message],
    [14, "This protocol is restricted, expecting header 'triton-grpc-protocol-key'"],
  );
  const metadata = { "triton-grpc-protocol-key": "secret" };
  assert.equal((await call(body, { port: guarded.port, metadata })).status, 0);
  await guarded.close(AbortSignal.abort());
});

test("metadata with the configured names becomes parameters of the request", async () => {
  let seen: ReadonlyMap<string, unknown> = new Map();
  engine.add("tells", {
    inputs: { IN: ["FP32", [-1]] },
    outputs: {},
    run: (request) => {
      seen = request.parameters;
      return [];
    },
  });
  const forwarding = await openKserveGrpc(options({ forwardedHeaders: /x-.*/i }));
  const metadata = { "x-user": "ann ", other: "no" };
  const reply = await call(frameMessage(identity(floats(1), "tells")), { port: forwarding.port, metadata });
  assert.equal(reply.status, 0, reply.message);
  assert.deepEqual([...seen], [["x-user", "ann "]]);
  await forwarding.close(AbortSignal.abort());
});

test("a status text with any characters arrives, truncated to the length that clients accept", async () => {
  const text = "ü%\n".repeat(5000);
  engine.add("tells", {
    inputs: { IN: ["FP32", [-1]] },
    outputs: {},
    run: () => Promise.reject(new Error(text)),
  });
  const reply = await call(frameMessage(identity(floats(1), "tells")));
  assert.equal(reply.status, 13);
  assert.ok(reply.message.startsWith("ü%\nü%\n") && reply.message.endsWith(" ... (cut)"));
});

test("closing answers running calls and rejects new ones", async () => {
  const closing = await openKserveGrpc(options());
  const response = call(frameMessage(identity(floats(1), "held")), { port: closing.port });
  await heldCalls(1);
  const closed = closing.close(new AbortController().signal);
  await assert.rejects(call(frameMessage(identity(floats(1))), { port: closing.port }));
  held[0]!.respond();
  assert.equal((await response).status, 0);
  await closed;
});

test("closing cancels the remaining calls when its deadline passes", async () => {
  const closing = await openKserveGrpc(options());
  const lost = assert.rejects(call(frameMessage(identity(floats(1), "held")), { port: closing.port }));
  await heldCalls(1);
  await closing.close(AbortSignal.abort());
  await lost;
  assert.equal(held[0]!.signal.aborted, true);
  held[0]!.respond();
});

test("a client that pings too often is disconnected with GOAWAY", async () => {
  const strict = await openKserveGrpc(options());
  const session = connect(`http://127.0.0.1:${strict.port}`);
  await once(session, "remoteSettings");
  session.on("error", () => {});
  const goaway = new Promise<[number, string]>((resolve) => {
    session.on("goaway", (code, _lastStream, data) => resolve([code, Buffer.from(data ?? "").toString()]));
  });
  const closed = new Promise<void>((resolve) => session.once("close", resolve));
  for (let count = 0; count < 4; count++) session.ping(() => {});
  assert.deepEqual(await goaway, [constants.NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings"]);
  await closed;
  await strict.close(AbortSignal.abort());
});

test("a client may ping without limit while it receives data, before and after other pings that were too frequent", async () => {
  const strict = await openKserveGrpc(options());
  const session = connect(`http://127.0.0.1:${strict.port}`);
  let goaway = 0;
  session.on("goaway", () => goaway++);
  const stream = open(session, streamPath);
  const pinged = () => new Promise<void>((resolve) => void session.ping(() => resolve()));
  // The client pings after each chunk of a message of 8 MiB, as gRPC's own clients do to measure the connection.
  const data = many(2 ** 21);
  stream.write(frameMessage(identity(data)));
  let received = 0;
  let pings = 0;
  for await (const chunk of stream) {
    received += (chunk as Buffer).length;
    if (received >= data.length) break;
    await pinged();
    pings++;
  }
  assert.ok(pings > 100, `${pings} pings`);
  assert.equal(goaway, 0);
  session.destroy();
  await strict.close(AbortSignal.abort());
});

test("a status text keeps leading and trailing spaces, also for clients that reject fields with them", async () => {
  engine.add("tells", {
    inputs: { IN: ["FP32", [-1]] },
    outputs: {},
    run: () => Promise.reject(new Error(" blanks ")),
  });
  assert.equal((await call(frameMessage(identity(floats(1), "tells")))).message, " blanks ");
  const session = connect(`http://127.0.0.1:${listener.port}`, { strictFieldWhitespaceValidation: true });
  const stream = open(session);
  stream.end(frameMessage(identity(floats(1), "tells")));
  const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
  assert.equal(headers["grpc-message"], "%20blanks%20");
  session.destroy();
});

test("a connection over its maximum age is closed gracefully after its running calls", async () => {
  const keepalive = { ...usualKeepalive, connectionAgeMaxMs: 50_000 };
  const clock = new ManualTimersClock(keepalive.connectionAgeMaxMs);
  const aging = await openKserveGrpc(options({ keepalive, clock }));
  const session = connect(`http://127.0.0.1:${aging.port}`);
  const stream = open(session);
  stream.resume();
  stream.end(frameMessage(identity(floats(1), "held")));
  await heldCalls(1);
  clock.fireTimers();
  await once(session, "goaway");
  const trailers = once(stream, "trailers") as Promise<[Record<string, unknown>]>;
  held[0]!.respond();
  assert.equal(Number((await trailers)[0]["grpc-status"]), 0);
  await aging.close(new AbortController().signal);
});

test("invalid HTTP/2 bytes, and a silent connection, end only their own connection", async () => {
  const clock = new ManualTimersClock(defaultGrpcLimits.prefaceTimeoutMs);
  const guarded = await openKserveGrpc(options({ clock }));
  for (const [bytes, isWaited] of [
    ["GET / HTTP/1.1\r\n\r\n", false],
    ["\0\0\0", false],
    ["", true],
  ] as const) {
    const socket = connectTcp(guarded.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(bytes);
    const closed = once(socket.resume(), "close");
    if (isWaited) {
      await eventually(() => clock.pendingTimerCount === 1);
      clock.fireTimers();
    }
    await closed;
  }
  assert.equal((await call(frameMessage(identity(floats(1))), { port: guarded.port })).status, 0);
  await guarded.close(AbortSignal.abort());
});
