import assert from "node:assert/strict";
import { connect } from "node:net";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { ByteBudget, InferenceError, EventLoopQueue, silentLogger, systemClock } from "@galatea/base";
import { noParameters, type InferenceResponse } from "../../inference/index.ts";
import { releaseTensors } from "../../tensor/index.ts";
import { FakeEngine } from "../fake-engine.ts";
import { addUsualModels } from "../fake-models.ts";
import { connectOverMessages } from "../engine-messages/connect-over-messages.ts";
import { openHttpListener } from "../http-listener/index.ts";
import { usualHttpLimits } from "../http-listener/limits-fixture.ts";
import type { OutcomeStream, SendRequest } from "./outcome-stream.ts";
import { GenerateCalls } from "./index.ts";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";

const target = { namespace: "", modelName: "id_fp32", modelVersion: "" };
const eventType = "text/event-stream; charset=utf-8";

interface Serving extends AsyncDisposable {
  readonly engine: FakeEngine;
  readonly budget: ByteBudget;
  readonly port: number;
}

/** Opens a server whose paths `/generate` and `/stream` call `id_fp32`, or return the outcomes of `streamOutcomes`. */
async function serve(streamOutcomes?: SendRequest, budgetBytes = 2 ** 30): Promise<Serving> {
  const budget = new ByteBudget(budgetBytes);
  const engine = new FakeEngine(2 ** 30, budget);
  addUsualModels(engine);
  const remote = connectOverMessages(engine);
  const limits = { ...usualHttpLimits, stallTimeoutMs: 30_000 };
  const acquired: SendRequest = (model, request) => {
    releaseTensors(request.inputs);
    return streamOutcomes!(model, request);
  };
  const source = streamOutcomes === undefined ? {} : { streamOutcomes: acquired };
  const calls = new GenerateCalls({ limits, ...source });
  const listener = await openHttpListener({
    clock: systemClock,
    address: { host: "127.0.0.1", port: 0 },
    limits,
    budget,
    logger: silentLogger,
    handle: async (exchange) => {
      using model = remote.engine.open(target);
      if (exchange.path === "/generate") await calls.generate(exchange, { target, model });
      else await calls.stream(exchange, { target, model });
    },
  });
  return {
    engine,
    budget,
    port: listener.port,
    async [Symbol.asyncDispose]() {
      await listener.close(AbortSignal.abort());
      await eventually(() => budget.usedBytes === 0 && engine.openCount === 0 && remote.openCount === 0);
    },
  };
}

/** Sends a request. Resolves with the response when its headers have arrived; its body is not read. */
function post(port: number, path: string, body = '{"IN":[1,2]}'): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { "content-length": Buffer.byteLength(body) };
    const outgoing = httpRequest({ host: "127.0.0.1", port, method: "POST", path, headers, agent: false }, resolve);
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

async function textOf(reply: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of reply as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

const texts = (...values: string[]): InferenceResponse => {
  const data = Buffer.concat(
    values.map((value) => {
      const element = Buffer.alloc(4 + Buffer.byteLength(value));
      element.writeUInt32LE(element.length - 4);
      element.write(value, 4);
      return element;
    }),
  );
  const outputs = [{ name: "OUT", datatype: "BYTES" as const, shape: [values.length], data, block: null }];
  return { modelName: "m", modelVersion: "1", outputs, parameters: noParameters };
};

const event = (value: string) => `data: {"OUT":"${value}","model_name":"m","model_version":"1"}\n\n`;

const from = (...outcomes: (InferenceResponse | InferenceError)[]): SendRequest =>
  async function* (): OutcomeStream {
    yield* outcomes;
  };

test("generate responds with the members in order, and releases everything", async () => {
  await using serving = await serve();
  const reply = await post(serving.port, "/generate", '{"IN":[0.5,2],"id":"r"}');
  assert.equal(reply.statusCode, 200);
  assert.equal(await textOf(reply), '{"OUT":[0.5,2.0],"id":"r","model_name":"id_fp32","model_version":"1"}');
  assert.equal(serving.engine.arena.usedBytes, 0);
});

test("a long request is read in chunks and its response printed in chunks, each in its own event loop tick", async (t) => {
  const ticks = t.mock.method(EventLoopQueue.prototype, "next");
  await using serving = await serve();
  const numbers = Array.from({ length: 300_000 }, (_, index) => index % 100);
  const body = JSON.stringify({ IN: numbers });
  const reply = await post(serving.port, "/generate", body);
  assert.deepEqual((JSON.parse(await textOf(reply)) as { OUT: number[] }).OUT, numbers);
  // The server validates the text and then reads it, 64 KiB in each event loop tick.
  const read = 2 * Math.ceil(body.length / 2 ** 16);
  // The server prints the response, 16 KiB of its tensor in each event loop tick.
  const expected = read + Math.ceil((4 * numbers.length) / 2 ** 14);
  assert.ok(ticks.mock.callCount() >= expected, `${ticks.mock.callCount()} turns of ${expected}`);
});

test("a stream sends each response or error as an event, with the status of the first one", async () => {
  await using serving = await serve(from(texts("a"), new InferenceError("INTERNAL", 'no "b"'), texts("c")));
  const reply = await post(serving.port, "/stream");
  assert.equal(reply.statusCode, 200);
  assert.equal(reply.headers["content-type"], eventType);
  assert.equal(await textOf(reply), `${event("a")}data: {"error":"no \\"b\\""}\n\n${event("c")}`);
});

test("long texts are printed in chunks, each in its own event loop tick, in one object and in events", async (t) => {
  const ticks = t.mock.method(EventLoopQueue.prototype, "next");
  const long = "x".repeat(2 ** 20);
  await using one = await serve(from(texts(long)));
  assert.equal(
    await textOf(await post(one.port, "/generate")),
    `{"OUT":"${long}","model_name":"m","model_version":"1"}`,
  );
  assert.ok(ticks.mock.callCount() >= 4, `${ticks.mock.callCount()} turns`);
  ticks.mock.resetCalls();
  await using two = await serve(from(texts(long), texts("a"), texts(long)));
  assert.equal(await textOf(await post(two.port, "/stream")), event(long) + event("a") + event(long));
  assert.ok(ticks.mock.callCount() >= 8, `${ticks.mock.callCount()} turns`);
});

test("the responses of a decoupled model are events, and generate requires exactly one response", async () => {
  await using serving = await serve();
  serving.engine.add("id_fp32", {
    inputs: { IN: ["FP32", [-1]] },
    outputs: { OUT: ["FP32", [1]] },
    decoupled: true,
    run: (request) => {
      const data = request.inputs[0]!.data.slice();
      return Array.from({ length: data.length / 4 }, (_, index) => ({
        name: "OUT",
        datatype: "FP32",
        shape: [1],
        data: data.subarray(4 * index, 4 * index + 4),
        block: null,
      }));
    },
  });
  const stream = await post(serving.port, "/stream", '{"IN":[1,2]}');
  const numbers = [1, 2].map((value) => `data: {"OUT":${value}.0,"model_name":"id_fp32","model_version":"1"}\n\n`);
  assert.deepEqual([stream.statusCode, await textOf(stream)], [200, numbers.join("")]);
  const one = await post(serving.port, "/generate", '{"IN":[1]}');
  assert.equal(await textOf(one), '{"OUT":1.0,"model_name":"id_fp32","model_version":"1"}');
  assert.match(await textOf(await post(serving.port, "/generate")), /exactly 1 response/);
});

test("a stream without responses is empty; a stream that begins with an error has status 400", async () => {
  await using none = await serve(from());
  const empty = await post(none.port, "/stream");
  assert.deepEqual([empty.statusCode, empty.headers["content-type"], await textOf(empty)], [200, eventType, ""]);
  await using failing = await serve(from(new InferenceError("UNAVAILABLE", "no"), texts("a")));
  const failed = await post(failing.port, "/stream");
  assert.deepEqual([failed.statusCode, await textOf(failed)], [400, `data: {"error":"no"}\n\n${event("a")}`]);
});

test("generate rejects any number of responses other than one, with the status of the first", async () => {
  const error = new InferenceError("INTERNAL", "bad");
  for (const [outcomes, status] of [
    [[], 200],
    [[texts("a"), texts("b")], 200],
    [[error, texts("b")], 400],
  ] as const) {
    await using serving = await serve(from(...outcomes));
    const reply = await post(serving.port, "/generate");
    assert.equal(reply.statusCode, status);
    assert.match(await textOf(reply), /^\{"error":"generate expects model to produce exactly 1 response, /);
  }
});

test("an HTTP/1.0 client, which does not support chunks, gets the events until the connection ends", async () => {
  await using serving = await serve(from(texts("a"), texts("b")));
  const socket = connect(serving.port, "127.0.0.1");
  socket.end('POST /stream HTTP/1.0\r\nContent-Length: 12\r\n\r\n{"IN":[1,2]}');
  let text = "";
  for await (const segment of socket.setEncoding("latin1") as AsyncIterable<string>) text += segment;
  const [head, body] = text.split("\r\n\r\n");
  assert.match(head!, /^HTTP\/1\.[01] 200 OK\r\n/);
  assert.doesNotMatch(head!, /transfer-encoding/i);
  assert.equal(body, event("a") + event("b"));
});

test("a request that the engine rejects before the first response keeps its status and starts no stream", async () => {
  await using serving = await serve(
    from(new InferenceError("UNAVAILABLE", "Exceeds maximum queue size", { reason: "request-refused" })),
  );
  const reply = await post(serving.port, "/stream");
  assert.equal(reply.statusCode, 503);
  assert.match(await textOf(reply), /Exceeds maximum queue size/);
});

test("a response that exceeds the memory budget is an error status before the reply starts, and an error event afterwards", async () => {
  const large = texts("x".repeat(4 * 1024 * 1024));
  await using alone = await serve(from(large), 3 * 1024 * 1024);
  const refused = await post(alone.port, "/stream");
  assert.equal(refused.statusCode, 413);
  assert.match(await textOf(refused), /exceed the memory for all requests in flight/);
  await using later = await serve(from(texts("a"), large, texts("b")), 3 * 1024 * 1024);
  const reply = await post(later.port, "/stream");
  assert.equal(reply.statusCode, 200);
  const events = (await textOf(reply)).split(/(?<=\n\n)/);
  assert.equal(events.length, 3);
  assert.match(events[1]!, /^data: \{"error":"\d+ bytes exceed the memory/);
  assert.equal(events[2], event("b"));
});

test("a client that stops reading pauses only its own stream: no more responses are requested, and others are served", async () => {
  const segment = "x".repeat(256 * 1024);
  const count = 400;
  let requestCount = 0;
  let isFirst = true;
  await using serving = await serve(async function* (): OutcomeStream {
    if (!isFirst) yield texts("small");
    else {
      isFirst = false;
      for (; requestCount < count; requestCount++) yield texts(segment);
    }
  });
  const slow = await post(serving.port, "/stream");
  // When the sockets are full, the number of bytes that wait for the client is limited, and no more responses are requested.
  await eventually(() => serving.budget.usedBytes > segment.length);
  let seen = -1;
  for (let still = 0; still < 200; still = requestCount === seen ? still + 1 : 0) {
    seen = requestCount;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(requestCount < count / 2, `${requestCount} responses were produced for a client that reads none`);
  assert.equal(await textOf(await post(serving.port, "/stream")), event("small"));
  assert.equal((await textOf(slow)).length, count * event(segment).length);
  assert.equal(requestCount, count);
});

test("a client that disconnects with unread events ends the stream: its source is closed and nothing is kept", async () => {
  let closed = false;
  await using serving = await serve(async function* (): OutcomeStream {
    try {
      for (;;) yield texts("x".repeat(256 * 1024));
    } finally {
      closed = true;
    }
  });
  const reply = await post(serving.port, "/stream");
  reply.pause();
  reply.destroy();
  await eventually(() => closed && serving.budget.usedBytes === 0 && serving.engine.openCount === 0);
});

for (const path of ["/generate", "/stream"]) {
  test(`a client of ${path} that disconnects before the response aborts the request`, async () => {
    const started = Promise.withResolvers<void>();
    await using serving = await serve(async function* (_model, { signal }): OutcomeStream {
      started.resolve();
      await new Promise<void>((resolve) => signal!.addEventListener("abort", () => resolve(), { once: true }));
      yield new InferenceError("CANCELLED", "gone");
    });
    const outgoing = httpRequest({ host: "127.0.0.1", port: serving.port, method: "POST", path, agent: false });
    outgoing.on("error", () => {});
    outgoing.end('{"IN":1}');
    await started.promise;
    outgoing.destroy();
    await eventually(() => serving.engine.openCount === 0 && serving.budget.usedBytes === 0);
  });
}
