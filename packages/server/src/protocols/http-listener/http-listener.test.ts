import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import { arenaTensor } from "../fake-arena.ts";
import { FakeEngine } from "../fake-engine.ts";
import { addUsualModels } from "../fake-models.ts";
import { connectOverMessages } from "../engine-messages/connect-over-messages.ts";
import { openKserveHttp } from "../kserve-http/index.ts";
import { RawConnection, sendRawRequest, post } from "../raw-client.ts";
import { openHttpListener, type HttpLimits } from "./index.ts";
import { usualHttpLimits } from "./limits-fixture.ts";
import type { Listener } from "../listener.ts";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";

const url = "/v2/models/id_fp32/infer";
const json = '{"inputs":[{"name":"IN","shape":[1],"datatype":"FP32","data":[1]}]}';

interface Serving extends AsyncDisposable {
  readonly engine: FakeEngine;
  readonly budget: ByteBudget;
  readonly listener: Listener;
  readonly port: number;
}

async function serve(limits: Partial<HttpLimits> = {}, budget = new ByteBudget(2 ** 30)): Promise<Serving> {
  const engine = new FakeEngine(2 ** 30, budget);
  addUsualModels(engine);
  const listener = await openKserveHttp({
    clock: systemClock,
    engine: connectOverMessages(engine).engine,
    limits: { ...usualHttpLimits, ...limits },
    restrictions: new Map(),
    address: { host: "127.0.0.1", port: 0 },
    logger: silentLogger,
    budget,
  });
  return {
    engine,
    budget,
    listener,
    port: listener.port,
    async [Symbol.asyncDispose]() {
      await listener.close(AbortSignal.abort());
      assert.equal(engine.arena.usedBytes, 0, "blocks left over");
      assert.equal(budget.usedBytes, 0, "bytes left over");
    },
  };
}

/** Adds a model that responds when the test calls `open`, and that records whether its request was cancelled. */
function gate(
  engine: FakeEngine,
  outputBytes = 4,
): { open: () => void; entered: Promise<void>; givenUp: Promise<void> } {
  const opened = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  const givenUp = Promise.withResolvers<void>();
  engine.add("gate", {
    inputs: { IN: ["FP32", [-1]] },
    outputs: { OUT: ["FP32", [-1]] },
    run: async (request, arena) => {
      request.signal!.addEventListener("abort", () => givenUp.resolve());
      entered.resolve();
      await opened.promise;
      return [
        arenaTensor(arena, {
          name: "OUT",
          datatype: "FP32",
          shape: [outputBytes / 4],
          data: new Uint8Array(outputBytes),
        }),
      ];
    },
  });
  return { open: opened.resolve, entered: entered.promise, givenUp: givenUp.promise };
}

test("a request line that names the whole URL is answered like one that names the path", async () => {
  await using serving = await serve();
  for (const line of ["http://localhost:8000/v2/health/live", "HTTP://[::1]/v2/health/live?x=/y", "/v2/health/live"]) {
    assert.equal((await sendRawRequest(serving.port, `GET ${line} HTTP/1.1\r\nHost: x\r\n\r\n`)).status, 200, line);
  }
  for (const line of ["http://localhost", "http://localhost?x", "ftp://localhost/v2/health/live"]) {
    assert.equal((await sendRawRequest(serving.port, `GET ${line} HTTP/1.1\r\nHost: x\r\n\r\n`)).status, 404, line);
  }
});

test("a client that disconnects while its model executes aborts the request, and its memory is released", async () => {
  await using serving = await serve();
  const { open, entered, givenUp } = gate(serving.engine);
  const connection = await RawConnection.open(serving.port);
  connection.send(post("/v2/models/gate/infer", json));
  await entered;
  connection.socket.end();
  await givenUp;
  open();
});

test("pipelined requests are answered in order, and all of them are aborted when the client disconnects", async () => {
  await using serving = await serve();
  const { open, entered } = gate(serving.engine);
  using connection = await RawConnection.open(serving.port);
  connection.send(post("/v2/models/gate/infer", json));
  connection.send(post(url, json.replace("[1]}", "[5]}")));
  await entered;
  open();
  assert.match((await connection.reply())!.body, /"model_name":"gate"/);
  assert.match((await connection.reply())!.body, /"data":\[5\.0\]/);

  const second = gate(serving.engine);
  using other = await RawConnection.open(serving.port);
  other.send(post("/v2/models/gate/infer", json));
  const header =
    '{"parameters":{"binary_data_output":true},"inputs":[{"name":"IN","shape":[25000],"datatype":"FP32","parameters":{"binary_data_size":100000}}]}';
  const large = Buffer.concat([Buffer.from(header), Buffer.alloc(100_000)]);
  other.send(post(url, large, `Inference-Header-Content-Length: ${header.length}\r\n`));
  await second.entered;
  other.socket.destroy();
  await second.givenUp;
  second.open();
});

test("a client that disconnects in the middle of its body leaves no memory allocated", async () => {
  await using serving = await serve();
  const header =
    '{"inputs":[{"name":"IN","shape":[25000],"datatype":"FP32","parameters":{"binary_data_size":100000}}]}';
  const request = post(
    url,
    Buffer.concat([Buffer.from(header), Buffer.alloc(100_000)]),
    `Inference-Header-Content-Length: ${header.length}\r\n`,
  );
  const connection = await RawConnection.open(serving.port);
  connection.send(request.subarray(0, 50_000));
  await eventually(() => serving.engine.arena.usedBytes > 0);
  connection.socket.destroy();
  await eventually(() => serving.listener.activeCount === 0);
  assert.equal(serving.engine.arena.usedBytes, 0);
});

test("a client that does not read its large response is disconnected, and the blocks are released", async () => {
  await using serving = await serve({ stallTimeoutMs: 100 });
  const { open } = gate(serving.engine, 64 * 1024 * 1024);
  using connection = await RawConnection.open(serving.port);
  connection.socket.pause();
  connection.send(post("/v2/models/gate/infer", `{"parameters":{"binary_data_output":true},${json.slice(1)}`));
  open();
  await eventually(() => serving.engine.arena.usedBytes >= 64 * 1024 * 1024);
  await eventually(() => serving.engine.arena.usedBytes === 0);
});

test("a body that stalls is answered 408; a model that takes longer than that is not disturbed", async () => {
  await using serving = await serve({ stallTimeoutMs: 80 });
  const reply = await sendRawRequest(serving.port, post(url, json).subarray(0, -5));
  assert.equal(reply.status, 408);
  const header =
    '{"inputs":[{"name":"IN","shape":[25000],"datatype":"FP32","parameters":{"binary_data_size":100000}}]}';
  const binary = post(url, header, `Inference-Header-Content-Length: ${header.length}\r\n`).toString();
  const stalled = await sendRawRequest(
    serving.port,
    binary.replace(`Length: ${header.length}`, `Length: ${header.length + 100_000}`),
  );
  assert.equal(stalled.status, 408);
  await eventually(() => serving.engine.arena.usedBytes === 0);
  const { open, entered } = gate(serving.engine);
  const response = sendRawRequest(serving.port, post("/v2/models/gate/infer", json));
  await entered;
  // This request takes longer than the time for which a body may stall.
  assert.equal((await sendRawRequest(serving.port, post(url, json).subarray(0, -5))).status, 408);
  open();
  assert.equal((await response).status, 200);
});

test("a connection whose body stalls gets 408 and is closed; a slow but steady one is answered", async () => {
  const stallTimeoutMs = 1500;
  await using serving = await serve({ stallTimeoutMs });
  const header = '{"inputs":[{"name":"IN","shape":[5],"datatype":"FP32","parameters":{"binary_data_size":20}}]}';
  const binary = Buffer.concat([Buffer.from(header), Buffer.from(new Float32Array([1, 2, 3, 4, 5]).buffer)]);
  const requests = [post(url, json), post(url, binary, `Inference-Header-Content-Length: ${header.length}\r\n`)];
  await Promise.all(
    requests.map(async (request) => {
      using connection = await RawConnection.open(serving.port);
      connection.send(request.subarray(0, -10));
      assert.equal((await connection.reply())!.status, 408);
      assert.equal(await connection.reply(), null);
    }),
  );
  await Promise.all(
    requests.map(async (request) => {
      using connection = await RawConnection.open(serving.port);
      const response = connection.reply();
      const stepBytes = Math.ceil(request.length / 20);
      for (let sent = 0; sent < request.length; sent += stepBytes) {
        connection.send(request.subarray(sent, sent + stepBytes));
        await new Promise((resolve) => setTimeout(resolve, stallTimeoutMs / 12));
      }
      assert.equal((await response)!.status, 200);
    }),
  );
});

test("headers that do not arrive, are too long or have a wrong length are answered with an error", async () => {
  await using serving = await serve({ headersTimeoutMs: 1000, headerBytesMax: 8192 });
  const slow = await sendRawRequest(serving.port, "GET /v2 HTTP/1.1\r\nX-");
  assert.deepEqual([slow.status, slow.body], [408, '{"error":"the request header did not arrive in time"}']);
  assert.equal((await sendRawRequest(serving.port, `GET /v2 HTTP/1.1\r\nX: ${"y".repeat(9000)}\r\n\r\n`)).status, 431);
  const lie = await sendRawRequest(serving.port, "POST /v2 HTTP/1.1\r\nContent-Length: abc\r\n\r\n");
  assert.deepEqual([lie.status, lie.body], [400, '{"error":"Unable to parse Content-Length, got: abc"}']);
  assert.equal((await sendRawRequest(serving.port, "\u0000\u0001 nonsense\r\n\r\n")).status, 400);
  const both = `POST ${url} HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`;
  assert.equal((await sendRawRequest(serving.port, both)).status, 400);
});

test("a body over its limit is rejected before and while it arrives, also with Expect: 100-continue", async () => {
  await using serving = await serve({ bodyBytesMax: 1000, chunksMax: 3 });
  const long = await sendRawRequest(serving.port, post(url, "x".repeat(2000)));
  assert.deepEqual([long.status, long.headers.get("connection")], [413, "close"]);
  const expecting = `POST ${url} HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n`;
  assert.equal((await sendRawRequest(serving.port, expecting)).status, 413);
  const chunk = `1f4\r\n${"x".repeat(500)}\r\n`;
  const chunked = `POST ${url} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n`;
  assert.equal((await sendRawRequest(serving.port, `${chunked}${chunk}${chunk}${chunk}`)).status, 413);
  const small = "1\r\nx\r\n".repeat(5);
  assert.match(
    (await sendRawRequest(serving.port, `${chunked}${small}0\r\n\r\n`)).body,
    /exceeds maximum of 3 non-empty chunks/,
  );
});

test("Expect: 100-continue is answered before the body", async () => {
  await using serving = await serve();
  using connection = await RawConnection.open(serving.port);
  connection.send(`POST ${url} HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: ${json.length}\r\n\r\n`);
  assert.equal((await connection.reply())!.status, 100);
  connection.send(json);
  assert.equal((await connection.reply())!.status, 200);
});

test("a chunked body that ends in the middle of a chunk fails only its request", async () => {
  await using serving = await serve();
  using connection = await RawConnection.open(serving.port);
  connection.send(`POST ${url} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n${json.slice(0, 20)}`);
  connection.socket.end();
  await connection.reply();
  await eventually(() => serving.listener.activeCount === 0);
  assert.equal((await sendRawRequest(serving.port, post(url, json))).status, 200);
});

test("closing rejects new connections, answers running requests, ends idle connections and then resolves", async () => {
  await using serving = await serve();
  const { open, entered } = gate(serving.engine);
  using idle = await RawConnection.open(serving.port);
  idle.send("GET /v2 HTTP/1.1\r\n\r\n");
  assert.equal((await idle.reply())!.status, 200);
  const response = sendRawRequest(serving.port, post("/v2/models/gate/infer", json));
  await entered;
  let closed = false;
  const closing = serving.listener.close(new AbortController().signal).then(() => (closed = true));
  assert.equal(await idle.reply(), null);
  await assert.rejects(RawConnection.open(serving.port), { code: "ECONNREFUSED" });
  assert.equal(closed, false);
  open();
  assert.equal((await response).status, 200);
  await closing;
});

test("an address in use is reported in Triton's words; a Unix socket serves as well", async () => {
  await using serving = await serve();
  const handle = () => {};
  const common = {
    clock: systemClock,
    limits: usualHttpLimits,
    logger: silentLogger,
    budget: new ByteBudget(2 ** 30),
    handle,
  };
  await assert.rejects(openHttpListener({ ...common, address: { host: "127.0.0.1", port: serving.port } }), {
    code: "UNAVAILABLE",
    message: `Socket '127.0.0.1:${serving.port}' already in use `,
  });
  const directory = await mkdtemp(join(tmpdir(), "listener-"));
  const socketPath = join(directory, "http.sock");
  const listener = await openHttpListener({
    ...common,
    address: { socketPath },
    handle: () => {
      throw new TypeError("a bug");
    },
  });
  const reply = await sendRawRequest(socketPath, "GET / HTTP/1.1\r\n\r\n");
  assert.deepEqual([reply.status, reply.body], [500, '{"error":"a bug"}']);
  await listener.close(AbortSignal.abort());
  await rm(directory, { recursive: true });
});
