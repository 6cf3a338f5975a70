import assert from "node:assert/strict";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { after, before, test } from "node:test";
import { MessageChannel, Worker } from "node:worker_threads";
import { ByteBudget } from "@galatea/base";
import type { ServedModel } from "../../engine/index.ts";
import { noParameters } from "../../inference/index.ts";
import { FakeEngine } from "../fake-engine.ts";
import { addUsualModels } from "../fake-models.ts";
import { sendRawRequest, post, RawConnection } from "../raw-client.ts";
import { EngineMessageServer } from "./engine-message-server.ts";
import type { FrontEndThreadData } from "./front-end-thread.ts";
import type { ToEngine } from "./messages.ts";
import { HandledMessageCount } from "./handled-message-count.ts";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";

// These tests run the HTTP front end in its own thread. The other tests of the protocols exchange the same messages within one thread.

const arenaBytes = 16 * 1024 * 1024;
const memory = new SharedArrayBuffer(arenaBytes);
const engine = new FakeEngine(arenaBytes, new ByteBudget(Infinity), memory);
addUsualModels(engine);
const { port1: ours, port2: theirs } = new MessageChannel();
const handled = new HandledMessageCount();
const engineSide = new EngineMessageServer(engine, (message) => ours.postMessage(message, []));
let worker: Worker;
let httpPort = 0;

before(async () => {
  const workerData: FrontEndThreadData = { port: theirs, turns: handled.memory, memory };
  worker = new Worker(new URL("front-end-thread.ts", import.meta.url), { workerData, transferList: [theirs] });
  const [{ listening }] = (await once(ours, "message")) as [{ listening: number }];
  httpPort = listening;
  ours.on("message", (message: ToEngine) => {
    engineSide.handle(message);
    handled.handled();
  });
});
after(async () => {
  await eventually(() => engine.openCount + engine.arena.usedBytes + engineSide.openCount === 0);
  const ended = once(worker, "exit");
  ours.postMessage({ stop: true }, []);
  assert.deepEqual(await ended, [0]);
});

const body = (values: readonly number[]) =>
  JSON.stringify({ inputs: [{ name: "IN", datatype: "FP32", shape: [values.length], data: values }] });

test("a JSON inference, and queries about the model and the server, work from another thread", async () => {
  const reply = await sendRawRequest(httpPort, post("/v2/models/id_fp32/infer", body([0.5, -2])));
  assert.equal(reply.status, 200, reply.body);
  assert.match(reply.body, /"outputs":\[\{"name":"OUT","datatype":"FP32","shape":\[2\],"data":\[0\.5,-2\.0\]\}\]\}$/);
  const get = (path: string) => sendRawRequest(httpPort, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  assert.equal((await get("/v2/health/ready")).status, 200);
  assert.match((await get("/v2/models/id_fp32")).body, /"name":"id_fp32"/);
  assert.match((await get("/v2/models/id_fp32/config")).body, /"backend":"python"/);
  assert.match((await get("/v2/models/stats")).body, /"model_stats":\[/);
});

test("binary tensors of any size pass through memory that both threads map", async () => {
  const values = new Float32Array(100_000).map((_, index) => index);
  const bytes = Buffer.from(values.buffer);
  const header = Buffer.from(
    JSON.stringify({
      inputs: [
        { name: "IN", datatype: "FP32", shape: [values.length], parameters: { binary_data_size: bytes.length } },
      ],
      outputs: [{ name: "OUT", parameters: { binary_data: true } }],
    }),
  );
  const headers = { "inference-header-content-length": String(header.length) };
  const url = `http://127.0.0.1:${httpPort}/v2/models/id_fp32/infer`;
  const reply = await fetch(url, { method: "POST", headers, body: Buffer.concat([header, bytes]) });
  const all = Buffer.from(await reply.arrayBuffer());
  assert.equal(reply.status, 200, all.toString("latin1", 0, 300));
  assert.ok(all.subarray(Number(reply.headers.get("inference-header-content-length"))).equals(bytes));
});

test("errors keep their texts and statuses", async () => {
  const unknown = await sendRawRequest(httpPort, post("/v2/models/nope/infer", body([1])));
  assert.deepEqual([unknown.status, unknown.body], [404, `{"error":"Request for unknown model: 'nope' is not found"}`]);
  const boom = await sendRawRequest(httpPort, post("/v2/models/slow/infer", body([-3])));
  assert.deepEqual([boom.status, boom.body], [503, '{"error":"boom"}']);
});

test("a disconnected client cancels its request in the other thread", async () => {
  const removed = Promise.withResolvers<void>();
  let hasStarted = false;
  engine.add("waits", {
    inputs: { IN: ["FP32", [-1]] },
    outputs: { OUT: ["FP32", [-1]] },
    run: ({ signal }) =>
      new Promise((resolve) => {
        hasStarted = true;
        signal!.addEventListener("abort", () => {
          removed.resolve();
          resolve([]);
        });
      }),
  });
  const client = await RawConnection.open(httpPort);
  client.send(post("/v2/models/waits/infer", body([1])));
  await eventually(() => hasStarted);
  client[Symbol.dispose]();
  await removed.promise;
  await eventually(() => engine.openCount === 0);
});

test("a client that does not read stops a model in the other thread until it reads again", async () => {
  const [count, creditMax] = [3000, 16];
  let sentCount = 0;
  engine.add("many", {
    inputs: { IN: ["FP32", [-1]] },
    outputs: { OUT: ["INT32", [4096]] },
    decoupled: true,
    run: () => [],
  });
  const opened = engine.open.bind(engine);
  const data = new Uint8Array(Int32Array.from({ length: 4096 }, () => 1).buffer);
  const outputs = [{ name: "OUT", datatype: "INT32", shape: [4096], data, block: null }] as const;
  const response = { modelName: "many", modelVersion: "1", outputs, parameters: noParameters };
  const stream: ServedModel["stream"] = (request, sink) =>
    new Promise((resolve) => {
      let credit = creditMax;
      const next = (): void => {
        while (credit > 0 && sentCount < count && request.signal?.aborted === false) {
          credit--;
          sentCount++;
          sink.respond(response, sentCount === count, () => {
            credit++;
            next();
          });
        }
        if (sentCount === count) resolve();
      };
      next();
    });
  engine.open = (target) => (target.modelName === "many" ? { ...opened(target), stream } : opened(target));
  const { promise, resolve } = Promise.withResolvers<IncomingMessage>();
  request({ port: httpPort, method: "POST", path: "/v2/models/many/generate_stream", agent: false }, resolve).end("{}");
  const reply = await promise;
  let before = -1;
  await eventually(() => {
    const isSame = sentCount === before;
    before = sentCount;
    return isSame && sentCount > creditMax;
  });
  assert.ok(sentCount < count / 2, `${sentCount} responses were produced for a client that reads none`);
  let text = "";
  reply.setEncoding("latin1");
  for await (const segment of reply as AsyncIterable<string>) text += segment;
  assert.deepEqual([sentCount, text.split("\n\n").length - 1], [count, count]);
});

test("many concurrent requests succeed", async () => {
  const replies = await Promise.all(
    Array.from({ length: 60 }, (_, index) => sendRawRequest(httpPort, post("/v2/models/id_fp32/infer", body([index])))),
  );
  for (const [index, reply] of replies.entries()) assert.match(reply.body, new RegExp(`"data":\\[${index}\\.0\\]`));
});
