import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import type { InferenceRequest } from "../inference/index.ts";
import type { Engine } from "../engine/index.ts";
import { FakeEngine } from "./fake-engine.ts";
import { connectOverMessages } from "./engine-messages/connect-over-messages.ts";
import { usualKeepalive } from "./grpc-listener/keepalive-fixture.ts";
import { defaultGrpcLimits } from "./grpc-listener/limits.ts";
import { usualHttpLimits } from "./http-listener/limits-fixture.ts";
import { openKserveGrpc } from "./kserve-grpc/kserve-grpc-listener.ts";
import { openKserveHttp } from "./kserve-http/kserve-listener.ts";
import { ModelInferRequestSchema } from "./kserve-grpc/gen/grpc_service_pb.js";
import { frameMessage } from "./raw-grpc-client.ts";
import { RawConnection } from "./raw-client.ts";

const timeoutUs = 5_000_000;
const tensorBytes = 64 * 1024;
const common = {
  clock: systemClock,
  logger: silentLogger,
  restrictions: new Map(),
  address: { host: "127.0.0.1", port: 0 },
} as const;

/** Returns the times that a model sees for a request whose body arrives in two parts, and the times when the parts were sent. */
async function sentInTwoParts(send: (engine: Engine, between: () => Promise<void>) => Promise<void>) {
  const engine = new FakeEngine();
  let seen: InferenceRequest | null = null;
  engine.add("m", {
    inputs: { IN: ["UINT8", [-1]] },
    outputs: {},
    run(request) {
      seen = request;
      return [];
    },
  });
  const beforeNs = systemClock.monotonicNs();
  let betweenNs = 0;
  await send(connectOverMessages(engine).engine, async () => {
    while (engine.openCount === 0) await new Promise((resolve) => setImmediate(resolve));
    betweenNs = systemClock.monotonicNs();
  });
  assert.ok(seen !== null, "the model was not called");
  return { request: seen as InferenceRequest, beforeNs, betweenNs };
}

function assertTimes({ request, beforeNs, betweenNs }: Awaited<ReturnType<typeof sentInTwoParts>>): void {
  const { receivedNs, deadlineNs } = request;
  assert.ok(receivedNs >= beforeNs && receivedNs <= betweenNs, "received with the body's last byte, not its first");
  assert.ok(deadlineNs >= betweenNs + timeoutUs * 1000, "the upload counts as a wait in a queue");
}

test("a request over HTTP is received with its head, and its deadline counts from its last byte", async () => {
  const sent = await sentInTwoParts(async (engine, between) => {
    const limits = usualHttpLimits;
    const listener = await openKserveHttp({ ...common, engine, limits, budget: new ByteBudget(2 ** 30) });
    using connection = await RawConnection.open(listener.port);
    const input = {
      name: "IN",
      datatype: "UINT8",
      shape: [tensorBytes],
      parameters: { binary_data_size: tensorBytes },
    };
    const json = JSON.stringify({ parameters: { timeout: timeoutUs }, inputs: [input] });
    const lines = `Content-Length: ${json.length + tensorBytes}\r\nInference-Header-Content-Length: ${json.length}\r\n`;
    connection.send(`POST /v2/models/m/infer HTTP/1.1\r\nHost: test\r\n${lines}\r\n${json}`);
    await between();
    connection.send(new Uint8Array(tensorBytes));
    assert.equal((await connection.reply())?.status, 200);
    await listener.close(AbortSignal.abort());
  });
  assertTimes(sent);
});

test("a request over gRPC is received with its first byte, and its deadline counts from its last", async () => {
  const sent = await sentInTwoParts(async (engine, between) => {
    const budget = new ByteBudget(2 ** 30);
    const limits = defaultGrpcLimits;
    const wiring = {
      keepalive: usualKeepalive,
      compressionLevel: "none",
      forwardedHeaders: null,
      tls: null,
    } as const;
    const listener = await openKserveGrpc({ ...common, ...wiring, engine, limits, budget });
    const body = toBinary(
      ModelInferRequestSchema,
      create(ModelInferRequestSchema, {
        modelName: "m",
        parameters: { timeout: { parameterChoice: { case: "int64Param", value: BigInt(timeoutUs) } } },
        inputs: [{ name: "IN", datatype: "UINT8", shape: [BigInt(tensorBytes)] }],
        rawInputContents: [new Uint8Array(tensorBytes)],
      }),
    );
    const message = frameMessage(body);
    const session = connect(`http://127.0.0.1:${listener.port}`);
    const stream = session.request({
      ":method": "POST",
      ":path": "/inference.GRPCInferenceService/ModelInfer",
      "content-type": "application/grpc",
      te: "trailers",
    });
    stream.resume();
    stream.write(message.subarray(0, message.length - 100));
    await between();
    const trailers = once(stream, "trailers") as Promise<[Record<string, unknown>]>;
    stream.end(message.subarray(message.length - 100));
    assert.equal(Number((await trailers)[0]["grpc-status"]), 0);
    session.close();
    await listener.close(AbortSignal.abort());
  });
  assertTimes(sent);
});
