import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ByteBudget, InferenceError, silentLogger, systemClock } from "@galatea/base";
import type { InferenceRequest } from "../../inference/index.ts";
import { arenaTensor } from "../fake-arena.ts";
import { FakeEngine } from "../fake-engine.ts";
import { connectOverMessages } from "../engine-messages/connect-over-messages.ts";
import { usualHttpLimits } from "../http-listener/limits-fixture.ts";
import type { Listener } from "../listener.ts";
import { sendRawRequest, post, type RawReply } from "../raw-client.ts";
import { defaultContainerLimits, openContainer, PayloadErrorResponse, type PayloadCodec } from "./index.ts";

const engine = new FakeEngine();
const remote = connectOverMessages(engine);
const budget = new ByteBudget(2 ** 30);
let mlRoot: string;
let socketPath: string;
let listener: Listener;
/** The model's last request. */
let requested: InferenceRequest | null = null;

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");

/** Passes bodies to the model unchanged, except where their first words select a test case. */
const codec: PayloadCodec = {
  executionParameters: { status: 200, contentType: "application/json", body: '{"MaxPayloadInMB":6}' },
  decode: async ({ bytes, tensor, contentType, loopQueue, signal }) => {
    const words = text(bytes.subarray(0, 16));
    await loopQueue.next(signal);
    if (words.startsWith("refuse"))
      throw new PayloadErrorResponse({ status: 415, contentType: "text/plain", body: "no" });
    if (words.startsWith("wrong")) throw new InferenceError("INVALID_ARG", "wrong words");
    return { inputs: [{ ...tensor, name: "IN" }], parameters: new Map([["content_type", contentType]]) };
  },
  encode: ({ outputs }, { accept }) => {
    const body = outputs[0]!.data.subarray(4);
    if (text(body.subarray(0, 16)).startsWith("bug")) throw new Error("a codec's bug");
    if (text(body).startsWith("absent")) return { status: 404, contentType: accept, body: "" };
    return { status: 201, contentType: accept, body };
  },
  failed: ({ message }) => ({ status: 500, contentType: "text/plain", body: `failed: ${message}` }),
};

before(async () => {
  mlRoot = await mkdtemp(join(tmpdir(), "payload-"));
  socketPath = join(mlRoot, "container.sock");
  await mkdir(join(mlRoot, "models", "h1", "model"), { recursive: true });
  for (const namespace of ["", "h1"]) {
    const name = namespace === "" ? "echo" : "tenant.tar.gz";
    const tensor = ["BYTES", [1]] as const;
    engine.add(
      name,
      {
        inputs: { IN: tensor },
        outputs: { OUT: tensor },
        run: (request, arena) => {
          requested = request;
          const message = text(request.inputs[0]!.data.subarray(4, 20));
          if (message.startsWith("full"))
            throw new InferenceError("UNAVAILABLE", "no memory", { reason: "out-of-memory" });
          return [arenaTensor(arena, { ...request.inputs[0]!, name: "OUT" })];
        },
      },
      namespace,
    );
  }
  listener = await openContainer({
    engine: remote.engine,
    clock: systemClock,
    limits: { ...usualHttpLimits, bodyBytesMax: 2 ** 22 },
    containerLimits: defaultContainerLimits,
    pingMode: "ready",
    unconfined: () => null,
    onPing: () => {},
    defaultModelName: "echo",
    language: { kind: "payload", codec },
    mlRoot,
    chooseModelDirectory: (directory) =>
      Promise.resolve({ repositoryDirectory: directory, modelDirectoryName: "model" }),
    address: { socketPath },
    budget,
    logger: silentLogger,
  });
  await sendRawRequest(socketPath, post("/models", '{"model_name":"h1","url":"/opt/ml/models/h1/model"}', target));
});

after(async () => {
  await listener.close(AbortSignal.abort());
  await rm(mlRoot, { recursive: true });
  assert.equal(engine.arena.usedBytes, 0, "blocks left over");
  assert.equal(remote.openCount, 0, "leases, blocks or calls were not released");
  assert.equal(budget.usedBytes, 0, "bytes left over");
});

const target = "X-Amzn-SageMaker-Target-Model: tenant.tar.gz\r\n";
const accept = "Accept: application/x-own\r\n";
const invoke = (body: string, headers = accept): Promise<RawReply> =>
  sendRawRequest(socketPath, post("/invocations", body, headers));
const seen = ({ status, body, headers }: RawReply) => [status, body, headers.get("content-type")];

test("a request's bytes and content type reach the model, and the model's reach the client", async () => {
  assert.deepEqual(seen(await invoke("1,2", `Content-Type: text/csv\r\n${accept}`)), [201, "1,2", "application/x-own"]);
  assert.equal(requested?.parameters.get("content_type"), "text/csv");
  assert.deepEqual(requested?.inputs[0]?.shape, [1]);
  assert.deepEqual(seen(await invoke("")), [201, "", "application/x-own"]);
});

test("a call without a timeout has one minute, as in the toolkits' containers", async () => {
  await sendRawRequest(socketPath, post("/invocations", "words"));
  assert.equal(requested?.executionMsMax, 60_000);
  await sendRawRequest(socketPath, post("/invocations", "words", "X-Galatea-Call-Limit-Ms: 3600000\r\n"));
  assert.equal(requested?.executionMsMax, 3_600_000);
});

test("long bodies and chunked bodies arrive complete", async () => {
  const long = "x".repeat(2 ** 20);
  assert.equal((await invoke(long)).body, long);
  const chunked = `POST /invocations HTTP/1.1\r\nHost: x\r\n${accept}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`;
  assert.deepEqual(seen(await sendRawRequest(socketPath, chunked)), [201, "abcde", "application/x-own"]);
});

test("a body over the limit is rejected before it is read", async () => {
  const head = `POST /invocations HTTP/1.1\r\nHost: x\r\nContent-Length: ${2 ** 22 + 1}\r\n\r\n`;
  assert.equal((await sendRawRequest(socketPath, head)).status, 413);
});

test("a request that the codec rejects gets the codec's error, and the model is not called", async () => {
  requested = null;
  assert.deepEqual(seen(await invoke("refuse")), [415, "no", "text/plain"]);
  assert.deepEqual(seen(await invoke("wrong")), [500, "failed: wrong words", "text/plain"]);
  assert.equal(requested, null);
  assert.deepEqual(seen(await invoke("bug")), [500, "failed: a codec's bug", "text/plain"]);
});

test("an archive is called by its id and no other name; only there, a lack of memory has its own status", async () => {
  const of = (body: string, headers: string) => sendRawRequest(socketPath, post("/models/h1/invoke", body, headers));
  assert.deepEqual(seen(await of("hi", target + accept)), [201, "hi", "application/x-own"]);
  assert.equal(requested?.namespace, "h1");
  const other = "X-Amzn-SageMaker-Target-Model: other.tar.gz\r\n";
  assert.match((await of("hi", other)).body, /^failed: X-Amzn-SageMaker-Target-Model header does not match/);
  assert.equal((await of("full", target)).status, 507);
  assert.equal((await invoke("full")).status, 500);
  assert.equal((await sendRawRequest(socketPath, post("/models/h2/invoke", "hi", ""))).status, 404);
});

test("a model's own empty 404 differs from that of a model that is not loaded by the description of the model", async () => {
  const describe = async (id: string) =>
    (await sendRawRequest(socketPath, `GET /models/${id} HTTP/1.1\r\nHost: x\r\n\r\n`)).status;
  const { status, body } = await sendRawRequest(socketPath, post("/models/h1/invoke", "absent", target + accept));
  assert.deepEqual([status, body, await describe("h1")], [404, "", 200]);
  const unloaded = await sendRawRequest(socketPath, post("/models/h2/invoke", "absent", target + accept));
  assert.deepEqual([unloaded.status, unloaded.body, await describe("h2")], [404, "", 404]);
});

test("a content type that is not a valid header value fails only its own request", async () => {
  const injected = { ...codec, encode: () => ({ status: 200, contentType: "a\r\nX-Evil: 1\u2028", body: "" }) };
  const path = join(mlRoot, "injected.sock");
  const own = await openContainer({
    engine: remote.engine,
    clock: systemClock,
    limits: usualHttpLimits,
    containerLimits: defaultContainerLimits,
    pingMode: "ready",
    unconfined: () => null,
    onPing: () => {},
    defaultModelName: "echo",
    language: { kind: "payload", codec: injected },
    mlRoot,
    chooseModelDirectory: () => assert.fail("nothing is loaded"),
    address: { socketPath: path },
    budget,
    logger: silentLogger,
  });
  try {
    const reply = await sendRawRequest(path, post("/invocations", "x", ""));
    assert.deepEqual([reply.status, reply.headers.get("x-evil")], [200, undefined]);
  } finally {
    await own.close(AbortSignal.abort());
  }
});

test("the codec's execution parameters are returned", async () => {
  const reply = await sendRawRequest(socketPath, "GET /execution-parameters HTTP/1.1\r\nHost: x\r\n\r\n");
  assert.deepEqual(seen(reply), [200, '{"MaxPayloadInMB":6}', "application/json"]);
});
