import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import { arenaTensor } from "../fake-arena.ts";
import { FakeEngine } from "../fake-engine.ts";
import { addUsualModels } from "../fake-models.ts";
import { connectOverMessages } from "../engine-messages/connect-over-messages.ts";
import { usualHttpLimits } from "../http-listener/limits-fixture.ts";
import { RawConnection, sendRawRequest, post } from "../raw-client.ts";
import { openKserveHttp } from "./index.ts";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";

const mebibyte = 1024 * 1024;
const url = "/v2/models/id_fp32/infer";
const small = '{"inputs":[{"name":"IN","shape":[1],"datatype":"FP32","data":[1]}]}';

interface Serving extends AsyncDisposable {
  readonly engine: FakeEngine;
  readonly budget: ByteBudget;
  readonly port: number;
}

async function serve(budgetBytes: number, memory: SharedArrayBuffer | null = null): Promise<Serving> {
  const budget = new ByteBudget(budgetBytes);
  const engine = new FakeEngine(2 ** 30, budget, memory);
  addUsualModels(engine);
  const listener = await openKserveHttp({
    clock: systemClock,
    engine: connectOverMessages(engine).engine,
    budget,
    limits: { ...usualHttpLimits, stallTimeoutMs: 20_000 },
    restrictions: new Map(),
    address: { host: "127.0.0.1", port: 0 },
    logger: silentLogger,
  });
  return {
    engine,
    budget,
    port: listener.port,
    async [Symbol.asyncDispose]() {
      await listener.close(AbortSignal.abort());
      await eventually(() => budget.usedBytes === 0);
    },
  };
}

const chunkedHead = (path: string, more = "") => `POST ${path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n${more}\r\n`;

function chunk(bytes: number): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.toString(16)}\r\n`), Buffer.alloc(bytes, " "), Buffer.from("\r\n")]);
}

test("a body with a known length that does not fit now is rejected with 503 and Retry-After before it arrives, and accepted when the other has ended", async () => {
  await using serving = await serve(3 * mebibyte);
  using holder = await RawConnection.open(serving.port);
  holder.send(post(url, small.padEnd(2_500_000)).subarray(0, 1000));
  await eventually(() => serving.budget.usedBytes >= 2_500_000);
  const body = `{"inputs":[{"name":"IN","shape":[350000],"datatype":"UINT8","data":[${"1,".repeat(349_999)}1]}]}`;
  const ofBytes = "/v2/models/id_uint8/infer";
  const refused = await sendRawRequest(serving.port, post(ofBytes, body).subarray(0, 1000));
  assert.deepEqual([refused.status, refused.headers.get("retry-after")], [503, "1"]);
  assert.match(
    refused.body,
    /^\{"error":"memory for requests in flight is full: 700\d{3} bytes requested, 250\d{4} of 3145728 bytes in use; retry later/,
  );
  assert.equal((await sendRawRequest(serving.port, post(url, small))).status, 200, "a small one still fits");
  holder.socket.destroy();
  await eventually(() => serving.budget.usedBytes === 0);
  assert.equal((await sendRawRequest(serving.port, post(ofBytes, body))).status, 200);
});

test("a body that is larger than all the memory for requests is rejected with 413, in every format", async () => {
  await using serving = await serve(mebibyte);
  const json = await sendRawRequest(serving.port, post(url, small.padEnd(2 * mebibyte)).subarray(0, 1000));
  assert.equal(json.status, 413);
  assert.match(json.body, /2097152 bytes exceed the memory for all requests in flight, 983040 bytes/);
  const header =
    '{"inputs":[{"name":"IN","shape":[500000],"datatype":"FP32","parameters":{"binary_data_size":2000000}}]}';
  const binary = post(url, header, `Inference-Header-Content-Length: ${header.length}\r\n`).toString();
  const lengthened = binary.replace(
    `Content-Length: ${header.length}\r`,
    `Content-Length: ${header.length + 2_000_000}\r`,
  );
  assert.equal((await sendRawRequest(serving.port, lengthened)).status, 413);
  const raw = post("/v2/models/id_fp32/infer", "", "Inference-Header-Content-Length: 0\r\n").toString();
  assert.equal(
    (await sendRawRequest(serving.port, raw.replace("Content-Length: 0\r", "Content-Length: 2000000\r"))).status,
    413,
  );
});

test("a client that sends Expect: 100-continue gets 503 or 413 instead of 100", async () => {
  await using serving = await serve(mebibyte);
  using holder = await RawConnection.open(serving.port);
  holder.send(post(url, small.padEnd(700_000)).subarray(0, 1000));
  await eventually(() => serving.budget.usedBytes >= 700_000);
  for (const [bytes, status] of [
    [700_000, 503],
    [2_000_000, 413],
    [1000, 100],
  ] as const) {
    const head = `POST ${url} HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: ${bytes}\r\n\r\n`;
    assert.equal((await sendRawRequest(serving.port, head)).status, status);
  }
});

test("bodies of unknown length reserve memory as they grow: together they stay within the budget, and an endless one ends with 503", async () => {
  await using serving = await serve(4 * mebibyte);
  const connections = await Promise.all(Array.from({ length: 40 }, () => RawConnection.open(serving.port)));
  const replies = await Promise.all(
    connections.map(async (connection) => {
      connection.send(chunkedHead(url));
      const reply = connection.reply();
      const reported = new AbortController();
      void reply.then(() => reported.abort());
      for (let sent = 0; sent < 200 && !reported.signal.aborted; sent++) {
        connection.send(chunk(16 * 1024));
        await new Promise((resolve) => setImmediate(resolve));
        assert.ok(serving.budget.usedBytes <= serving.budget.bytesMax + 40 * 4096);
      }
      connection.socket.destroySoon();
      return reply;
    }),
  );
  for (const connection of connections) connection[Symbol.dispose]();
  const statuses = replies.map((reply) => reply?.status);
  assert.ok(statuses.filter((status) => status === 503 || status === 413).length >= 30, String(statuses));
  await eventually(() => serving.budget.usedBytes === 0);
  assert.equal((await sendRawRequest(serving.port, post(url, small))).status, 200);
});

test("a small body that inflates beyond the memory budget is rejected while it inflates, not afterwards", async () => {
  await using serving = await serve(4 * mebibyte);
  const bomb = gzipSync(Buffer.alloc(50 * mebibyte, " "));
  const responses = await Promise.all(
    Array.from({ length: 20 }, () => sendRawRequest(serving.port, post(url, bomb, "Content-Encoding: gzip\r\n"))),
  );
  for (const { status, body } of responses) {
    assert.ok(status === 503 || status === 413, body);
    assert.match(body, /memory for (all )?requests in flight/);
  }
  await eventually(() => serving.budget.usedBytes === 0);
  const fair = await sendRawRequest(serving.port, post(url, gzipSync(small), "Content-Encoding: gzip\r\n"));
  assert.equal(fair.status, 200);
});

test("only a few bodies that inflate to large ones are inflated at a time, and small ones do not wait for them", async () => {
  await using serving = await serve(2048 * mebibyte);
  const bomb = gzipSync(Buffer.alloc(30 * mebibyte, " "));
  const packed = (body: Buffer) => post(url, body, "Content-Encoding: gzip\r\n");
  let endedCount = 0;
  const bombs = Array.from({ length: 20 }, async () => {
    const { status, body } = await sendRawRequest(serving.port, packed(bomb));
    endedCount += 1;
    assert.equal(status, 500, body);
  });
  let largestBytes = 0;
  const watched = setInterval(() => (largestBytes = Math.max(largestBytes, serving.budget.usedBytes)), 1);
  assert.equal((await sendRawRequest(serving.port, packed(gzipSync(small)))).status, 200);
  assert.ok(endedCount < 20, "the small body is answered before the last large one");
  await Promise.all(bombs);
  clearInterval(watched);
  assert.ok(largestBytes > 30 * mebibyte && largestBytes < 300 * mebibyte, `${largestBytes} bytes at once`);
});

test("a client that disconnects while its body inflates releases the memory", async () => {
  await using serving = await serve(256 * mebibyte);
  using connection = await RawConnection.open(serving.port);
  connection.send(post(url, gzipSync(Buffer.alloc(60 * mebibyte, " ")), "Content-Encoding: gzip\r\n"));
  await eventually(() => serving.budget.usedBytes > mebibyte);
  connection.socket.destroy();
  await eventually(() => serving.budget.usedBytes === 0);
});

test("the decoded form of a long text is counted, and a request cannot list more inputs than the limit", async () => {
  await using serving = await serve(16 * mebibyte);
  const listed = await sendRawRequest(serving.port, post(url, `{"inputs":[${"{},".repeat(200_000)}{}]}`));
  assert.deepEqual(
    [listed.status, listed.body],
    [400, '{"error":"the request has more than 100000 inputs or outputs"}'],
  );
  const names = Array.from({ length: 200_000 }, (_, index) => `"p${index}":1`).join(",");
  const parameters = await sendRawRequest(serving.port, post(url, `{"parameters":{${names}},${small.slice(1)}`));
  assert.equal(parameters.status, 413);
  assert.equal(serving.budget.usedBytes, 0);
});

test("the JSON of a response that exceeds the memory budget is not produced; the client gets 503 or 413, and a binary response is sent", async () => {
  await using serving = await serve(6 * mebibyte);
  serving.engine.add("large", {
    inputs: { IN: ["FP32", [-1]] },
    outputs: { OUT: ["FP32", [-1]] },
    run: (_request, arena) => [
      arenaTensor(arena, { name: "OUT", datatype: "FP32", shape: [2 ** 19], data: new Uint8Array(2 ** 21) }),
    ],
  });
  const path = "/v2/models/large/infer";
  assert.equal((await sendRawRequest(serving.port, post(path, small))).status, 413);
  await eventually(() => serving.budget.usedBytes === 0);
  const binary = await sendRawRequest(
    serving.port,
    post(path, `{"parameters":{"binary_data_output":true},${small.slice(1)}`),
  );
  assert.equal(binary.status, 200);
});

test("responses that wait for slow clients are counted: other requests are rejected meanwhile, and health is answered", async () => {
  await using serving = await serve(64 * mebibyte);
  const zeros = new Uint8Array(2 ** 23);
  serving.engine.add("large", {
    inputs: { IN: ["FP32", [-1]] },
    outputs: { OUT: ["UINT8", [-1]] },
    run: () => [{ name: "OUT", datatype: "UINT8", shape: [2 ** 23], data: zeros, block: null }],
  });
  const readers: RawConnection[] = [];
  for (let reader = 0; reader < 4; reader++) {
    const connection = await RawConnection.open(serving.port);
    connection.socket.pause();
    connection.send(post("/v2/models/large/infer", small));
    readers.push(connection);
  }
  await eventually(() => serving.budget.usedBytes > 24 * mebibyte);
  const body = small.padEnd(45_000_000);
  assert.equal((await sendRawRequest(serving.port, post(url, body).subarray(0, 1000))).status, 503);
  assert.equal((await sendRawRequest(serving.port, "GET /v2/health/live HTTP/1.1\r\n\r\n")).status, 200);
  for (const reader of readers) reader[Symbol.dispose]();
  await eventually(() => serving.budget.usedBytes === 0);
  assert.equal((await sendRawRequest(serving.port, post(url, small))).status, 200);
});

test("small responses that accumulate for a client that reads nothing are counted", async () => {
  await using serving = await serve(64 * mebibyte);
  using connection = await RawConnection.open(serving.port);
  connection.socket.pause();
  const values = `[${Array.from({ length: 2000 }, () => "1.5").join(",")}]`;
  const body = small.replace("[1],", "[2000],").replace("[1]}", `${values}}`);
  const before = serving.budget.usedBytes;
  for (let sent = 0; sent < 3000; sent++) connection.send(post(url, body));
  await eventually(() => serving.budget.usedBytes > before + 64 * 1024);
  connection.socket.destroy();
  await eventually(() => serving.budget.usedBytes === 0);
});

test("binary bodies of 1 MB are read into memory that is freed when it is copied, not by the garbage collector", async () => {
  // The fake arena allocates all blocks from this one buffer. Otherwise the garbage collector would have to free them, which would change
  // the measurement.
  await using serving = await serve(64 * mebibyte, new SharedArrayBuffer(128 * mebibyte));
  serving.engine.add("takes", { inputs: { IN: ["UINT8", [-1]] }, outputs: {}, run: () => [] });
  const header =
    '{"inputs":[{"name":"IN","shape":[1000000],"datatype":"UINT8","parameters":{"binary_data_size":1000000}}]}';
  const body = Buffer.concat([Buffer.from(header), Buffer.alloc(1_000_000)]);
  const request = post("/v2/models/takes/infer", body, `Inference-Header-Content-Length: ${header.length}\r\n`);
  using connection = await RawConnection.open(serving.port);
  const send = async (count: number) => {
    for (let sent = 0; sent < count; sent++) {
      connection.send(request);
      assert.equal((await connection.reply())?.status, 200);
    }
    return process.memoryUsage().arrayBuffers;
  };
  const beforeBytes = await send(4);
  const grownBytes = (await send(64)) - beforeBytes;
  assert.ok(grownBytes < mebibyte, `${grownBytes} bytes of 64 requests are left to the collector`);
});
