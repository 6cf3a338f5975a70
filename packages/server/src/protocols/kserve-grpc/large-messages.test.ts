/** Tests of messages of all sizes on one connection, fast, slow, complete or truncated. Each call must read only its own messages. */
import assert from "node:assert/strict";
import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { after, before, test, type TestContext } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createCertificate } from "@galatea/base/certificates";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { FakeEngine } from "../fake-engine.ts";
import { addUsualModels } from "../fake-models.ts";
import { defaultGrpcLimits } from "../grpc-listener/index.ts";
import { usualKeepalive } from "../grpc-listener/keepalive-fixture.ts";
import type { Listener } from "../listener.ts";
import { frameMessage, splitMessages } from "../raw-grpc-client.ts";
import {
  ModelInferRequestSchema,
  ModelInferResponseSchema,
  ModelStreamInferResponseSchema,
} from "./gen/grpc_service_pb.js";
import { openKserveGrpc, type KserveGrpcOptions } from "./index.ts";

const service = "/inference.GRPCInferenceService/";
type Kind = "raw" | "typed" | "short";

const sizes: Readonly<Record<Kind, readonly number[]>> = {
  raw: [1, 70_000, 500_000, 16 * 1024, 2_500_000, 65_536 - 5, 1_000_000, 300],
  /** The first message is decoded over several event loop ticks. The others wait for it while the server reads the messages after them. */
  typed: [300_000, 9000, 9000, 9000, 9000, 9000, 9000, 9000],
  short: [20_000, 3000],
};

const engine = new FakeEngine(2 ** 28);
const budget = new ByteBudget(2 ** 30);
const certificate = (() => {
  const now = Date.now();
  const dates = { notBefore: new Date(now - 86_400_000), notAfter: new Date(now + 86_400_000) };
  return createCertificate({ names: ["localhost"], ...dates });
})();
const listeners: Listener[] = [];

before(async () => {
  addUsualModels(engine);
  const { certificatePem, keyPem } = certificate;
  const tls = { certificate: Buffer.from(certificatePem), key: Buffer.from(keyPem), clientRoots: null };
  for (const each of [null, tls]) listeners.push(await openKserveGrpc(options(each)));
});

after(async () => {
  for (const listener of listeners) await listener.close(AbortSignal.abort());
  assert.equal(budget.usedBytes, 0);
  assert.equal(engine.openCount, 0);
});

function options(tls: KserveGrpcOptions["tls"]): KserveGrpcOptions {
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

function openSession(context: TestContext, kind: "plain" | "TLS"): ClientHttp2Session {
  const memory = { maxSessionMemory: 256 };
  const session =
    kind === "plain"
      ? connect(`http://127.0.0.1:${listeners[0]!.port}`, memory)
      : connect(`https://127.0.0.1:${listeners[1]!.port}`, {
          ...memory,
          ca: certificate.certificatePem,
          servername: "localhost",
        });
  context.after(() => session.destroy());
  return session;
}

/** Returns bytes that depend on the message's index and on their offset in the message. */
const contentOf = (index: number, byteLength: number) =>
  Uint8Array.from({ length: byteLength }, (_, at) => (at * 7 + (at >> 8) + index * 31) % 251);

function message(index: number, kind: Kind): Uint8Array {
  const content = contentOf(index, sizeOf(index, kind));
  const input = { name: "IN", datatype: "UINT8", shape: [BigInt(content.length)] };
  const data =
    kind === "typed"
      ? { inputs: [{ ...input, contents: { uintContents: [...content] } }] }
      : { inputs: [input], rawInputContents: [content] };
  return toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, { modelName: "id_uint8", id: `${index} ${kind}`, ...data }),
  );
}

const sizeOf = (index: number, kind: Kind) => sizes[kind][index % sizes[kind].length]!;

const open = (session: ClientHttp2Session, method: string) =>
  session.request({
    ":method": "POST",
    ":path": service + method,
    "content-type": "application/grpc",
    te: "trailers",
  });

async function replies(stream: ClientHttp2Stream): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return splitMessages(Buffer.concat(chunks));
}

function assertEchoed({ id, rawOutputContents }: { id: string; rawOutputContents: Uint8Array[] }): void {
  const [index, kind] = id.split(" ") as [string, Kind];
  const sent = contentOf(Number(index), sizeOf(Number(index), kind));
  assert.ok(Buffer.from(sent).equals(rawOutputContents[0]!), `message ${id} came back changed`);
}

function assertAllEchoed(responses: readonly Buffer[], count: number): void {
  assert.equal(responses.length, count);
  for (const response of responses) {
    const { errorMessage, inferResponse } = fromBinary(ModelStreamInferResponseSchema, response);
    assert.equal(errorMessage, "");
    assertEchoed(inferResponse!);
  }
}

/** Sends concurrent calls and checks their responses. Every fifth call is cancelled in the middle. */
async function assertCallsEchoed(session: ClientHttp2Session, count: number): Promise<void> {
  const calls = Array.from({ length: count }, async (_, index) => {
    const stream = open(session, "ModelInfer");
    const complete = frameMessage(message(index, index % 3 === 2 ? "typed" : "raw"));
    if (index % 5 === 4) {
      stream.on("error", () => {});
      stream.write(complete.subarray(0, complete.length >> 1), () => stream.close(constants.NGHTTP2_CANCEL));
      return;
    }
    stream.end(complete);
    const [reply] = await replies(stream);
    assertEchoed(fromBinary(ModelInferResponseSchema, reply!));
  });
  await Promise.all(calls);
}

for (const kind of ["plain", "TLS"] as const) {
  test(
    `calls at once on a ${kind} connection, some broken off in the middle, get back what they sent`,
    { timeout: testTimeoutMs },
    async (context) => {
      await assertCallsEchoed(openSession(context, kind), 24);
    },
  );

  test(
    `messages of a stream on a ${kind} connection are kept while the next ones arrive`,
    { timeout: testTimeoutMs },
    async (context) => {
      const stream = open(openSession(context, kind), "ModelStreamInfer");
      for (let index = 0; index < 32; index++) stream.write(frameMessage(message(index, "typed")));
      stream.end();
      assertAllEchoed(await replies(stream), 32);
    },
  );

  test(
    `messages on a ${kind} connection wait for a client that reads nothing, while other calls are served`,
    { timeout: testTimeoutMs },
    async (context) => {
      const session = openSession(context, kind);
      const stream = open(session, "ModelStreamInfer");
      // 600 messages are more than the server reads before the client reads the first responses.
      for (let index = 0; index < 600; index++) stream.write(frameMessage(message(index, "short")));
      stream.end();
      await assertCallsEchoed(session, 12);
      assertAllEchoed(await replies(stream), 600);
    },
  );
}
