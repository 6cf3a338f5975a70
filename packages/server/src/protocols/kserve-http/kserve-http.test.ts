import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { gunzipSync, gzipSync, inflateSync } from "node:zlib";
import { ByteBudget, EventLoopQueue, silentLogger, systemClock } from "@galatea/base";
import { arenaTensor } from "../fake-arena.ts";
import { FakeEngine } from "../fake-engine.ts";
import { addUsualModels } from "../fake-models.ts";
import { connectOverMessages } from "../engine-messages/connect-over-messages.ts";
import { usualHttpLimits } from "../http-listener/limits-fixture.ts";
import { RawConnection, sendRawRequest, post } from "../raw-client.ts";
import { openKserveHttp } from "./index.ts";
import type { Listener } from "../listener.ts";

interface ReceivedResponse {
  readonly name: string;
  readonly request: string;
  readonly status: number;
  readonly contentType: string;
  readonly jsonBytes: string;
  readonly body: string;
}

/** Recorded requests and the responses of tritonserver 2.51 with the same models; bytes are latin1. */
const results = JSON.parse(
  readFileSync(new URL("../../../../../conformance/vectors/kserve-http-answers.json", import.meta.url), "utf8"),
) as readonly ReceivedResponse[];

const engine = new FakeEngine();
addUsualModels(engine);
const remote = connectOverMessages(engine);
let listener: Listener;
const budget = new ByteBudget(2 ** 30);
let port: number;
const limits = { ...usualHttpLimits, inputBytesMax: 100_000, bodyBytesMax: 16 * 1024 * 1024 };

before(async () => {
  listener = await openKserveHttp({
    clock: systemClock,
    engine: remote.engine,
    limits,
    restrictions: new Map([["logging", { header: "X-Key", value: "secret" }]]),
    address: { host: "127.0.0.1", port: 0 },
    logger: silentLogger,
    budget,
  });
  port = listener.port;
});
after(async () => {
  await listener.close(AbortSignal.abort());
  assert.equal(engine.arena.usedBytes, 0, "blocks left over");
  assert.equal(budget.usedBytes, 0, "bytes left over");
  assert.equal(engine.openCount, 0, "models still open after their calls");
  assert.equal(remote.openCount, 0, "leases, blocks or calls were not released");
});

/** Numbers outside of the range of their datatype. This server rejects them; tritonserver stores other numbers. */
const outOfRange = new Set([
  "INT8 128",
  "INT8 -129",
  "INT8 300",
  "UINT8 256",
  "INT16 40000",
  "UINT16 70000",
  "INT32 2147483648",
  "INT32 -2147483649",
  "UINT32 4294967296",
]);

describe("an integer that is out of its datatype's range is rejected", () => {
  for (const { name, request } of results.filter((response) => outOfRange.has(response.name))) {
    test(name, async () => {
      const [datatype, value] = name.split(" ");
      const { status, body } = await sendRawRequest(port, request);
      assert.equal(status, 400);
      assert.match(body, new RegExp(`value ${value} is out of range for datatype ${datatype}`));
    });
  }
});

describe("other responses equal those of tritonserver 2.51", () => {
  for (const response of results.filter(({ name }) => !outOfRange.has(name))) {
    test(response.name, async () => {
      const reply = await sendRawRequest(port, response.request);
      assert.equal(reply.body, response.body);
      assert.equal(reply.status, response.status);
      assert.equal(reply.headers.get("content-type"), response.contentType);
      assert.equal(reply.headers.get("inference-header-content-length") ?? "", response.jsonBytes);
      assert.equal(reply.headers.has("date"), false);
      assert.equal(reply.headers.get("connection") === "close", response.name === "conn close");
    });
  }
});

const identity = (data: string, shape: string) =>
  `{"inputs":[{"name":"IN","shape":${shape},"datatype":"FP32","data":${data}}]}`;
const binaryHeader = (bytes: number, expected = true) =>
  `{${expected ? '"parameters":{"binary_data_output":true},' : ""}"inputs":[{"name":"IN","shape":[${bytes / 4}],"datatype":"FP32","parameters":{"binary_data_size":${bytes}}}]}`;

describe("routes", () => {
  const get = (path: string, headers = "") => sendRawRequest(port, `GET ${path} HTTP/1.1\r\n${headers}\r\n`);

  test("health is an empty 200 of type text/plain, or 400 if the engine is not healthy", async () => {
    const { status, body, headers } = await get("/v2/health/ready");
    assert.deepEqual([status, body, headers.get("content-type")], [200, "", "text/plain"]);
    engine.ready = false;
    assert.equal((await get("/v2/health/ready")).status, 400);
    engine.ready = true;
    assert.equal((await get("/v2/models/add_sub/versions/1/ready")).status, 200);
  });

  test("GET / is a page of the models for a browser, and Triton's 404 for every other client and method", async () => {
    const { status, body, headers } = await get("/", "Accept: text/html,*/*;q=0.8\r\n");
    assert.deepEqual([status, headers.get("content-type")], [200, "text/html; charset=utf-8"]);
    assert.match(headers.get("content-security-policy") ?? "", /^default-src 'none'; /);
    assert.match(body, /<h1>Galatea \S+<\/h1>\n<table><tr><th>server<td>triton\n/);
    assert.match(body, /<tr><td>add_sub<td>1<td>READY<td>/);
    for (const lines of ["", "Accept: */*\r\n", "Accept: application/json\r\n"]) {
      const other = await get("/", lines);
      assert.deepEqual([other.status, other.body], [404, '{"error":"Not Found"}']);
    }
    const posted = await sendRawRequest(port, "POST / HTTP/1.1\r\nAccept: text/html\r\nContent-Length: 0\r\n\r\n");
    assert.deepEqual([posted.status, posted.body], [404, '{"error":"Not Found"}']);
  });

  test("paths are matched raw: no decoding, no trailing slash, queries ignored, versions of digits only", async () => {
    assert.equal((await get("/v2?x=1")).status, 200);
    assert.deepEqual((await get("/v2/")).body, '{"error":"Not Found"}');
    assert.equal((await get("/v2/models/add_sub/versions/x")).body, '{"error":"Not Found"}');
    assert.equal((await get("/v2/models//ready")).status, 404);
    assert.equal(
      (await get("/v2/models/add%5fsub")).body,
      `{"error":"Request for unknown model: 'add%5fsub' is not found"}`,
    );
    const digits = "99999999999999999999999";
    assert.equal(
      (await get(`/v2/models/add_sub/versions/${digits}`)).body,
      `{"error":"failed to get model version from specified version string '${digits}' (details: stol), version should be an integral value > 0"}`,
    );
  });

  test("a known path with another method is 405", async () => {
    const reply = await sendRawRequest(port, "PUT /v2/health/live HTTP/1.1\r\n\r\n");
    assert.equal(reply.status, 405);
    assert.equal((await get("/v2/models/add_sub/infer")).body, '{"error":"Method Not Allowed"}');
  });

  test("unsupported APIs are rejected by name with 501; a restricted API checks its header first", async () => {
    const reply = await sendRawRequest(port, post("/v2/models/add_sub/trace/setting", "{}"));
    assert.deepEqual(
      [reply.status, reply.body],
      [501, '{"error":"the trace extension is not supported by this server yet"}'],
    );
    assert.equal((await get("/v2/logging")).body, `{"error":"This API is restricted, expecting header 'X-Key'"}`);
    assert.equal((await get("/v2/logging", "x-key: secret\r\n")).status, 501);
  });

  test("statistics print every key, because perf_analyzer reads every key", async () => {
    const { body } = await get("/v2/models/add_sub/stats");
    const row = (JSON.parse(body) as { model_stats: Record<string, unknown>[] }).model_stats[0]!;
    assert.deepEqual(Object.keys(row), [
      "name",
      "version",
      "last_inference",
      "inference_count",
      "execution_count",
      "inference_stats",
      "response_stats",
      "batch_stats",
      "memory_usage",
    ]);
    assert.deepEqual(Object.keys(row["inference_stats"] as object), [
      "success",
      "fail",
      "queue",
      "compute_input",
      "compute_infer",
      "compute_output",
      "cache_hit",
      "cache_miss",
    ]);
  });

  test("a long body of a load is read in chunks, each in its own event loop tick", async (t) => {
    const ticks = t.mock.method(EventLoopQueue.prototype, "next");
    const numbers = JSON.stringify(Array.from({ length: 300_000 }, (_, index) => index % 100));
    const body = `{"ignored":${numbers},"parameters":{"config":"{}","file:1/a":"aGk="}}`;
    const load = await sendRawRequest(port, post("/v2/repository/models/add_sub/load", body));
    assert.deepEqual([load.status, load.body, engine.calls.at(-1)], [200, "", "load add_sub {} 1/a=hi"]);
    const expected = Math.ceil(body.length / 2 ** 16);
    assert.ok(ticks.mock.callCount() >= expected, `${ticks.mock.callCount()} turns of ${expected}`);
    const torn = await sendRawRequest(port, post("/v2/repository/models/add_sub/load", body.slice(0, -1)));
    assert.deepEqual([torn.status, /failed to parse the request JSON buffer/.test(torn.body)], [500, true]);
    const lag = await sendRawRequest(port, post("/v2/repository/models/add_sub/load", `${body} 1`));
    assert.match(lag.body, /The document root must not be followed by other values/);
  });

  test("bodies of index and unload requests, which have no files, have the limit of other JSON", async () => {
    const long = `{"ready":true,"ignored":"${"x".repeat(limits.inputBytesMax)}"}`;
    for (const path of ["index", "models/add_sub/unload"]) {
      const reply = await sendRawRequest(port, post(`/v2/repository/${path}`, long));
      const text = `request body of ${long.length} bytes exceeds the maximum allowed body size of 100000 bytes`;
      assert.deepEqual([reply.status, reply.body], [413, JSON.stringify({ error: text })]);
    }
  });

  test("the repository index omits empty members", async () => {
    const all = JSON.parse((await sendRawRequest(port, post("/v2/repository/index", ""))).body) as object[];
    assert.deepEqual(all.at(-1), { name: "untouched" });
    assert.deepEqual(all[0], { name: "add_sub", version: "1", state: "READY" });
    const wrong = await sendRawRequest(port, post("/v2/repository/index", '{"ready":1}'));
    assert.deepEqual([wrong.status, wrong.body], [400, `{"error":"Invalid value for 'ready': expected a boolean"}`]);
  });

  test("load passes the configuration override and the decoded files to the engine; errors are those of Triton", async () => {
    const load = (body: string) => sendRawRequest(port, post("/v2/repository/models/add_sub/load", body));
    const done = await load('{"parameters":{"config":"{\\"name\\":\\"x\\"}","file:1/model.py":"aGVsbG8="}}');
    assert.deepEqual([done.status, done.body], [200, ""]);
    assert.equal(engine.calls.at(-1), 'load add_sub {"name":"x"} 1/model.py=hello');
    assert.equal((await load("")).status, 200);
    assert.equal(engine.calls.at(-1), "load add_sub - ");
    assert.equal(
      (await load('{"parameters":{"config":1}}')).body,
      '{"error":"attempt to access JSON non-string as string"}',
    );
    assert.equal(
      (await load('{"parameters":{"foo":"x"}}')).body,
      '{"error":"unexpected error on creating Triton parameter"}',
    );
    assert.equal((await load('{"parameters":{"file:a":"!!!"}}')).status, 400);
    assert.equal((await load('{"parameters":3}')).body, '{"error":"attempt to get members for non-object"}');
    const broken = await load('{"par');
    assert.deepEqual(
      [broken.status, broken.body],
      [500, '{"error":"failed to parse the request JSON buffer: Missing a closing quotation mark in string. at 5"}'],
    );
    const nope = await sendRawRequest(port, post("/v2/repository/models/nope/load", ""));
    assert.deepEqual(
      [nope.status, nope.body],
      [500, `{"error":"failed to load 'nope', failed to poll from model repository"}`],
    );
    const named = await sendRawRequest(port, post("/v2/repository/foo/models/x/load", ""));
    assert.deepEqual([named.status, named.body], [501, `{"error":"'repository_name' specification is not supported"}`]);
    await sendRawRequest(port, post("/v2/repository/models/m/unload", '{"parameters":{"unload_dependents":true}}'));
    assert.equal(engine.calls.at(-1), "unload m true");
  });
});

describe("inference bodies", () => {
  const url = "/v2/models/id_fp32/infer";
  const values = Float32Array.from({ length: 500_000 }, (_, index) => index);
  const data = Buffer.from(values.buffer);

  test("a large binary tensor is returned bit for bit, in whatever chunks the body arrives", async () => {
    const header = binaryHeader(data.length);
    const request = post(
      url,
      Buffer.concat([Buffer.from(header), data]),
      `Inference-Header-Content-Length: ${header.length}\r\n`,
    );
    using connection = await RawConnection.open(port);
    for (const cut of [1, 60, 170, 171, 260, 100_000, 1_500_001, request.length]) {
      connection.send(request.subarray(0, cut));
      // The server runs in this process. Within these event loop ticks, it reads the first part separately.
      for (let tick = 0; tick < 4; tick++) await new Promise((resolve) => setImmediate(resolve));
      connection.send(request.subarray(cut));
      const reply = (await connection.reply())!;
      const jsonBytes = Number(reply.headers.get("inference-header-content-length"));
      assert.equal(reply.headers.get("content-type"), "application/octet-stream");
      assert.ok(Buffer.from(reply.body.slice(jsonBytes), "latin1").equals(data));
    }
    assert.equal(engine.arena.usedBytes, 0);
  });

  test("chunked and compressed bodies are read as the same request", async () => {
    const json = identity("[1,2]", "[2]");
    const chunked = `POST ${url} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n${json.slice(0, 3)}\r\n${(json.length - 3).toString(16)}\r\n${json.slice(3)}\r\n0\r\n\r\n`;
    const plain = await sendRawRequest(port, post(url, json));
    assert.equal((await sendRawRequest(port, chunked)).body, plain.body);
    assert.equal(
      (await sendRawRequest(port, post(url, gzipSync(json), "Content-Encoding: gzip\r\n"))).body,
      plain.body,
    );
    const gzip = await sendRawRequest(port, post(url, json, "Accept-Encoding: deflate;q=0.5, gzip\r\n"));
    assert.equal(gzip.headers.get("content-encoding"), "gzip");
    assert.equal(gunzipSync(Buffer.from(gzip.body, "latin1")).toString(), plain.body);
    const deflate = await sendRawRequest(port, post(url, json, "Accept-Encoding: deflate, gzip\r\n"));
    assert.equal(inflateSync(Buffer.from(deflate.body, "latin1")).toString(), plain.body);
    for (const accept of ["identity", "gzip;q=0", "*", "br", "GZIP", "gzip;q=0.3, identity;q=0.9", "gzip;q=abc"]) {
      const reply = await sendRawRequest(port, post(url, json, `Accept-Encoding: ${accept}\r\n`));
      assert.equal(reply.headers.has("content-encoding"), false, accept);
    }
  });

  test("a raw body is read as the same request whole, compressed and in chunks", async () => {
    const raw = Buffer.from(Float32Array.of(1.5, -2, 0.25).buffer);
    const noHeader = "Inference-Header-Content-Length: 0\r\n";
    const chunked = `POST ${url} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n${noHeader}\r\n5\r\n${raw.toString("latin1", 0, 5)}\r\n7\r\n${raw.toString("latin1", 5)}\r\n0\r\n\r\n`;
    for (const request of [
      post(url, raw, noHeader),
      post(url, gzipSync(raw), `${noHeader}Content-Encoding: gzip\r\n`),
      Buffer.from(chunked, "latin1"),
    ]) {
      const { status, headers, body } = await sendRawRequest(port, request);
      assert.equal(status, 200, body);
      const data = body.slice(Number(headers.get("inference-header-content-length")));
      assert.equal(Buffer.from(data, "latin1").toString("hex"), raw.toString("hex"));
    }
    assert.equal(engine.arena.usedBytes, 0);
  });

  test("a compressed body is decompressed up to its limit; garbage and truncation are rejected", async () => {
    const bomb = gzipSync(Buffer.alloc(10_000_000));
    const send = (body: Uint8Array) => sendRawRequest(port, post(url, body, "Content-Encoding: gzip\r\n"));
    assert.equal(
      (await send(bomb)).body,
      '{"error":"Decompressed data size exceeds the maximum allowed value of 100000 bytes. Use --http-max-input-size to increase the limit."}',
    );
    assert.equal((await send(Buffer.from("nothing"))).status, 400);
    assert.equal((await send(gzipSync(identity("[1]", "[1]")).subarray(0, -9))).status, 400);
  });

  test("JSON is bounded by --http-max-input-size, tensors and text", async () => {
    const long = identity(`[${"1,".repeat(60_000)}1]`, "[60001]");
    const text = await sendRawRequest(port, post(url, long));
    assert.deepEqual(
      [text.status, text.body],
      [
        400,
        `{"error":"request JSON size of ${long.length} bytes exceeds the maximum allowed input size of 100000 bytes. Use --http-max-input-size to increase the limit."}`,
      ],
    );
    const tensor = await sendRawRequest(port, post(url, identity("[1]", "[100000000]")));
    assert.equal(
      tensor.body,
      `{"error":"JSON input 'IN' has a byte_size (400000000 bytes) that exceeds the maximum allowed value of 100000 bytes. Use --http-max-input-size to increase the limit."}`,
    );
  });

  test("nesting over 99 levels is rejected (Triton 2.51 recurses without a limit), and so is a shape that overflows", async () => {
    const nested = (depth: number) => identity("[".repeat(depth) + "1" + "]".repeat(depth), "[1]");
    assert.equal((await sendRawRequest(port, post(url, nested(99)))).status, 200);
    const reply = await sendRawRequest(port, post(url, nested(100)));
    assert.deepEqual(
      [reply.status, reply.body],
      [400, '{"error":"JSON nesting depth exceeds maximum allowed limit (100)"}'],
    );
    assert.equal((await sendRawRequest(port, post(url, "[".repeat(90_000)))).status, 400);
    const overflow = await sendRawRequest(port, post(url, identity("[1]", "[4611686018427387904,4]")));
    assert.match(overflow.body, /causes total element count to exceed maximum size of 9223372036854775807/);
  });

  test("a header length without digits is rejected, as in newer servers", async () => {
    const reply = await sendRawRequest(port, post(url, "{}", "Inference-Header-Content-Length: abc\r\n"));
    assert.deepEqual(
      [reply.status, reply.body],
      [400, '{"error":"Unable to parse Inference-Header-Content-Length, got: abc"}'],
    );
  });

  test("classification of a batch takes each row's top values with their labels", async () => {
    const sixteen = `[${Array.from({ length: 16 }, (_, index) => index).join(",")}]`;
    const body = `{"inputs":[{"name":"INPUT0","shape":[2,16],"datatype":"FP32","data":[${sixteen},${sixteen}]},{"name":"INPUT1","shape":[2,16],"datatype":"FP32","data":[${sixteen},${sixteen}]}],"outputs":[{"name":"OUTPUT1","parameters":{"classification":1}}]}`;
    const { body: response } = await sendRawRequest(port, post("/v2/models/add_sub/infer", body));
    assert.match(response, /"datatype":"BYTES","shape":\[2,1\],"data":\["0.000000:0:l0","0.000000:0:l0"\]/);
  });

  test("a full arena is a 503 after the body was read, and the connection stays open", async () => {
    using connection = await RawConnection.open(port);
    const filler = engine.arena.allocate(engine.arena.capacityBytes - engine.arena.usedBytes);
    const header = binaryHeader(data.length);
    const request = post(
      url,
      Buffer.concat([Buffer.from(header), data]),
      `Inference-Header-Content-Length: ${header.length}\r\n`,
    );
    connection.send(request);
    assert.equal((await connection.reply())!.status, 503);
    filler.release();
    connection.send(request);
    assert.equal((await connection.reply())!.status, 200);
  });

  test("a model without an arena gets views of the body", async () => {
    engine.add("plain", {
      inputs: { IN: ["FP32", [-1]] },
      outputs: { OUT: ["FP32", [-1]] },
      usesArena: false,
      run: (request, arena) => [arenaTensor(arena, { ...request.inputs[0]!, name: "OUT" })],
    });
    const header = binaryHeader(8, false);
    const body = Buffer.concat([Buffer.from(header), Buffer.from(Float32Array.of(1, 2).buffer)]);
    const reply = await sendRawRequest(
      port,
      post("/v2/models/plain/infer", body, `Inference-Header-Content-Length: ${header.length}\r\n`),
    );
    assert.match(reply.body, /"data":\[1\.0,2\.0\]/);
  });
});
