/** Tests of clients that begin calls and reset them at once (HTTP/2 rapid reset), and of correct clients that cancel many calls. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, constants, type ClientHttp2Session } from "node:http2";
import { afterEach, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { create, toBinary } from "@bufbuild/protobuf";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { FakeEngine } from "../fake-engine.ts";
import { addUsualModels } from "../fake-models.ts";
import { defaultGrpcLimits } from "../grpc-listener/index.ts";
import type { Listener } from "../listener.ts";
import { callGrpc, frameMessage } from "../raw-grpc-client.ts";
import { ModelInferRequestSchema } from "./gen/grpc_service_pb.js";
import { openTarget } from "./rapid-reset-target-fixture.ts";

const path = "/inference.GRPCInferenceService/ModelInfer";
const { resetBurstMax, resetsPerSecondMax } = defaultGrpcLimits;
let engine: FakeEngine;
let listener: Listener;
let warnings: string[];
let heldCount: number;

beforeEach(async () => {
  engine = new FakeEngine(2 ** 26);
  warnings = [];
  heldCount = 0;
  addUsualModels(engine);
  engine.add("held", { inputs: { IN: ["FP32", [-1]] }, outputs: {}, run: () => new Promise(() => heldCount++) });
  listener = await openTarget(engine, warnings);
});
afterEach(() => listener.close(AbortSignal.abort()));

/** Attacks the port from 127.0.0.2, with connections that reset calls in a separate thread. */
async function attacked(connectionCount: number, more: Readonly<Record<string, string>>, port = listener.port) {
  const workerData = { port, path, connectionCount, more };
  const worker = new Worker(new URL("./rapid-reset-fixture.ts", import.meta.url), { workerData });
  const seen = { sentCount: 0, closedCount: 0, [Symbol.asyncDispose]: async () => void (await worker.terminate()) };
  worker.on("message", (counts: { readonly sentCount: number; readonly closedCount: number }) =>
    Object.assign(seen, counts),
  );
  await once(worker, "online");
  return seen;
}

function message(modelName: string): Uint8Array {
  const inputs = [{ name: "IN", datatype: "FP32", shape: [1n] }];
  const request = create(ModelInferRequestSchema, { modelName, inputs, rawInputContents: [new Uint8Array(4)] });
  return frameMessage(toBinary(ModelInferRequestSchema, request));
}

const infer = () => callGrpc(listener.port, { path, metadata: {}, body: message("id_fp32"), timeoutMs: 600_000 });

function begin(session: ClientHttp2Session, metadata: Readonly<Record<string, string>> = {}) {
  const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers", ...metadata };
  const stream = session.request(headers);
  stream.on("error", () => {});
  stream.resume();
  stream.end(message("held"));
  return stream;
}

async function connected(): Promise<ClientHttp2Session> {
  const session = connect(`http://127.0.0.1:${listener.port}`);
  session.on("error", () => {});
  await once(session, "remoteSettings");
  return session;
}

for (const [what, more] of [
  ["calls", {}],
  ["calls with deadlines that are far", { "grpc-timeout": "1H" }],
  ["calls whose deadlines have passed before they are read", { "grpc-timeout": "1n" }],
] as const)
  test(`four connections that reset ${what} as fast as they can are closed after few calls`, async (t) => {
    await using attack = await attacked(4, more);
    await eventually(() => attack.closedCount > 4);
    const delays: number[] = [];
    let openedMax = 0;
    for (let count = 0; count < 50; count++) {
      const startMs = performance.now();
      assert.equal((await infer()).status, 0);
      delays.push(performance.now() - startMs);
      openedMax = Math.max(openedMax, listener.activeCount);
    }
    delays.sort((a, b) => a - b);
    t.diagnostic(
      `another client: median ${delays[25]?.toFixed(1)} ms, longest ${delays[49]?.toFixed(1)} ms; ` +
        `${attack.sentCount} calls sent, ${attack.closedCount} connections closed, RSS ${(process.memoryUsage().rss / 1e6).toFixed(0)} MB`,
    );
    assert.ok(openedMax < 1000, `${openedMax} calls at once`);
    assert.match(warnings[0] ?? "", /^gRPC: client 127\.0\.0\.2 resets more than 100 calls a second/);
  });

test("clients that reset calls do not crash the server, however often Node collects closed sessions", async () => {
  // These flags run a full garbage collection whenever the young generation is full. It has its minimum size, so collections also run in
  // the middle of reads.
  const flags = ["--gc-global", "--max-semi-space-size=1"];
  const program = fileURLToPath(new URL("./rapid-reset-target-fixture.ts", import.meta.url));
  const target = spawn(process.execPath, [...flags, program], { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  target.stderr.on("data", (text: Buffer) => (errors += text.toString()));
  const ended = once(target, "exit");
  try {
    const [port] = (await once(target.stdout, "data")) as [Buffer];
    await using attack = await attacked(4, {}, Number(port));
    // Without retainNativeSession the process ends after 100,000 to 150,000 calls.
    await eventually(() => attack.sentCount > 2_000_000 || target.exitCode !== null || target.signalCode !== null);
    assert.equal(target.signalCode, null, errors);
    assert.equal(target.exitCode, null, errors);
  } finally {
    target.kill("SIGKILL");
    await ended;
  }
});

test("a client that cancels too many calls keeps its running calls for a moment, and reconnects", async () => {
  const session = await connected();
  const kept = begin(session);
  const goaway = once(session, "goaway");
  const cancelled = Array.from({ length: resetBurstMax + 50 }, () => begin(session));
  await eventually(() => heldCount === cancelled.length + 1);
  for (const stream of cancelled) stream.close(constants.NGHTTP2_CANCEL);
  const [code] = (await goaway) as [number];
  assert.equal(code, constants.NGHTTP2_NO_ERROR);
  assert.equal(kept.closed, false);
  assert.equal((await infer()).status, 0);
  session.destroy();
});

test("any number of calls whose deadlines pass do not count as resets", async () => {
  const session = await connected();
  let isClosed = false;
  session.once("goaway", () => (isClosed = true));
  for (let round = 0; round < 5; round++) {
    const calls = Array.from({ length: 2 * resetBurstMax }, () => {
      const stream = begin(session, { "grpc-timeout": "200m" });
      // gRPC clients reset the call at the deadline, before or after the server does.
      const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), 199);
      const closed = new Promise((resolve) => stream.once("close", resolve));
      return closed.finally(() => clearTimeout(timer));
    });
    await Promise.all(calls);
  }
  assert.equal(isClosed, false);
  assert.deepEqual(warnings, []);
  session.destroy();
});

test("completed calls, and clients that disconnect with all of their calls, do not count as resets", async () => {
  for (let round = 0; round < 3; round++) {
    const session = await connected();
    const before = heldCount;
    for (let count = 0; count < 2 * resetBurstMax; count++) begin(session);
    await eventually(() => heldCount === before + 2 * resetBurstMax);
    session.destroy();
    await eventually(() => listener.activeCount === 0);
  }
  const session = await connected();
  for (let count = 0; count < 10 * resetsPerSecondMax; count++) {
    const stream = session.request({
      ":method": "POST",
      ":path": "/none",
      "content-type": "application/grpc",
      te: "trailers",
    });
    stream.resume();
    stream.end();
    await once(stream, "close");
  }
  assert.deepEqual(warnings, []);
  session.destroy();
});
