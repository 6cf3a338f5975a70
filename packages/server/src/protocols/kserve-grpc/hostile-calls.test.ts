/** Tests of clients that violate HTTP/2 or gRPC, or use them to delay other clients. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, constants } from "node:http2";
import { connect as connectTcp } from "node:net";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { createCertificate } from "@galatea/base/certificates";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import { FakeEngine } from "../fake-engine.ts";
import { addUsualModels } from "../fake-models.ts";
import { defaultGrpcLimits } from "../grpc-listener/index.ts";
import { usualKeepalive } from "../grpc-listener/keepalive-fixture.ts";
import type { Listener } from "../listener.ts";
import { callGrpc, frameMessage } from "../raw-grpc-client.ts";
import { ModelInferRequestSchema } from "./gen/grpc_service_pb.js";
import { openKserveGrpc, type KserveGrpcOptions } from "./index.ts";
import { eventually, testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { threadCpuMs } from "@galatea/base/core/cpu-time-fixture.ts";

const inferPath = "/inference.GRPCInferenceService/ModelInfer";
const streamPath = "/inference.GRPCInferenceService/ModelStreamInfer";

const engine = new FakeEngine(2 ** 28);
const budget = new ByteBudget(2 ** 30);
let listener: Listener;
/** Pending responses of the model `held`. */
const held: (() => void)[] = [];

before(async () => {
  addUsualModels(engine);
  engine.add("held", {
    inputs: { IN: ["FP32", [-1]] },
    outputs: {},
    run: () => new Promise((resolve) => held.push(() => resolve([]))),
  });
  listener = await openKserveGrpc(options());
});

function options(tls: KserveGrpcOptions["tls"] = null): KserveGrpcOptions {
  return {
    engine,
    address: { host: "127.0.0.1", port: 0 },
    limits: defaultGrpcLimits,
    keepalive: usualKeepalive,
    compressionLevel: "none",
    tls,
    clock: systemClock,
    budget,
    logger: silentLogger,
    restrictions: new Map(),
    forwardedHeaders: null,
  };
}
after(async () => {
  await listener.close(AbortSignal.abort());
  assert.equal(budget.usedBytes, 0);
  assert.equal(engine.openCount, 0);
});

function message(modelName: string, modelVersion = ""): Uint8Array {
  const request = create(ModelInferRequestSchema, {
    modelName,
    modelVersion,
    inputs: [{ name: "IN", datatype: "FP32", shape: [1n] }],
    rawInputContents: [new Uint8Array(4)],
  });
  return toBinary(ModelInferRequestSchema, request);
}

const infer = (body: Uint8Array) =>
  callGrpc(listener.port, { path: inferPath, metadata: {}, body: frameMessage(body), timeoutMs: testTimeoutMs });

function open(path: string, metadata: Record<string, string> = {}) {
  const session = connect(`http://127.0.0.1:${listener.port}`);
  session.on("error", () => {});
  const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
  const stream = session.request({ ...headers, ...metadata });
  stream.on("error", () => {});
  return { session, stream };
}

test("a call that its client ends without an error while its message is decompressed gets no deadline status", async () => {
  const { session, stream } = open(inferPath, { "grpc-encoding": "gzip", "grpc-timeout": "100m" });
  // Decompressing this message takes longer than the deadline.
  const packed = frameMessage(gzipSync(Buffer.alloc(2 ** 28)));
  packed[0] = 1;
  // Unread bytes after the message keep the server's side of the stream open.
  stream.write(Buffer.concat([packed, Buffer.alloc(2 ** 18)]));
  await eventually(() => budget.usedBytes > 2 * packed.length);
  stream.close(constants.NGHTTP2_NO_ERROR);
  await eventually(() => listener.activeCount === 0);
  session.destroy();
  assert.equal((await infer(message("id_fp32"))).status, 0);
});

test("only a few messages that decompress to large ones are decompressed at a time", async () => {
  const packed = frameMessage(gzipSync(Buffer.alloc(2 ** 24)));
  packed[0] = 1;
  const bombs = Array.from({ length: 40 }, () =>
    callGrpc(listener.port, {
      path: inferPath,
      metadata: { "grpc-encoding": "gzip" },
      body: packed,
      timeoutMs: testTimeoutMs,
    }),
  );
  let largestBytes = 0;
  const watched = setInterval(() => (largestBytes = Math.max(largestBytes, budget.usedBytes)), 1);
  for (const { status } of await Promise.all(bombs)) assert.notEqual(status, 0);
  clearInterval(watched);
  assert.ok(largestBytes > 2 ** 24 && largestBytes < 2 ** 28, `${largestBytes} bytes at once`);
});

test("a version of millions of digits is rejected quickly, with any sign or padding", async () => {
  const startMs = threadCpuMs();
  for (const version of ["9".repeat(8_000_000), `-${"9".repeat(8_000_000)}`, `+${"0".repeat(8_000_000)}2`]) {
    const { status, message: text } = await infer(message("id_fp32", version));
    assert.ok(status === 3 || status === 5, `${status} ${text}`);
  }
  assert.equal((await infer(message("id_fp32", ` ${"0".repeat(100)}1`))).status, 0);
  // Parsing these versions as numbers would take ten seconds.
  assert.ok(threadCpuMs() - startMs < 3000);
});

test("requests of a stream reach their models in order, also after one that takes long to read", async () => {
  const order: string[] = [];
  engine.add("ordered", {
    inputs: { IN: ["BOOL", [-1]] },
    outputs: {},
    run: ({ id }) => {
      order.push(id);
      return [];
    },
  });
  const request = (id: string, count: number) => {
    const boolContents = Array.from({ length: count }, () => true);
    const inputs = [{ name: "IN", datatype: "BOOL", shape: [BigInt(count)], contents: { boolContents } }];
    return frameMessage(
      toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, { modelName: "ordered", id, inputs })),
    );
  };
  const body = Buffer.concat([request("long", 500_000), request("short", 1), request("last", 1)]);
  const reply = await callGrpc(listener.port, { path: streamPath, metadata: {}, body, timeoutMs: testTimeoutMs });
  assert.deepEqual([reply.status, reply.messages.length, order], [0, 3, ["long", "short", "last"]]);
});

test("a client that never completes the TLS handshake does not prevent the listener from closing", async () => {
  const now = Date.now();
  const dates = { notBefore: new Date(now - 86_400_000), notAfter: new Date(now + 86_400_000) };
  const { certificatePem, keyPem } = createCertificate({ names: ["localhost"], ...dates });
  const tls = { certificate: Buffer.from(certificatePem), key: Buffer.from(keyPem), clientRoots: null };
  const closing = await openKserveGrpc(options(tls));
  const socket = connectTcp(closing.port, "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  // The server has accepted the first connection when a later one is served.
  const session = connect(`https://127.0.0.1:${closing.port}`, { ca: certificatePem, servername: "localhost" });
  await once(session, "remoteSettings");
  session.destroy();
  const ended = once(socket.resume(), "close");
  await closing.close(new AbortController().signal);
  await ended;
});
