/** More requests than memory: those that do not fit are rejected, small ones succeed, and all memory is released. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import {
  sendRequest,
  assertEchoes,
  faultyRequest,
  errorOf,
  infer,
  inferPath,
  type HttpResponse,
} from "./http-client.ts";
import { writeFaultyModel } from "./faulty-model.ts";
import { arenaBytes, residentBytes } from "./processes.ts";
import { openServing, type Serving } from "./serving.ts";
import { until } from "./until.ts";
import { Wire } from "./wire.ts";

const mebibyte = 2 ** 20;
const boundBytes = 64 * mebibyte;
/** Memory that the server uses in addition to requests: code, uncollected heap, stacks, socket buffers. */
const slackBytes = 160 * mebibyte;

/** Returns the number of floats that its input contains. */
const generous = `import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            count = int(pb_utils.get_input_tensor_by_name(request, "VALUE").as_numpy()[0])
            answers.append(pb_utils.InferenceResponse([
                pb_utils.Tensor("OUT", np.zeros(count, np.float32)),
                pb_utils.Tensor("TEXT", np.array([""], object))]))
        return answers
`;

let serving: Serving;
let port: number;
let idleBytes = 0;
before(async () => {
  serving = await openServing({
    flags: [`--request-memory-bytes=${boundBytes}`],
    write: async ({ repository }) => {
      await writeFaultyModel(repository, "faulty", { more: "instance_group [ { count: 2 } ]\n" });
      await writeFaultyModel(repository, "generous", { text: generous });
    },
  });
  port = serving.server.httpPort;
  for (let round = 0; round < 20; round++) await assertEchoes(port, "faulty");
  idleBytes = residentBytes(serving.server.pid);
});
after(async () => {
  await serving[Symbol.asyncDispose]();
});

/** Returns the bytes in flight. The request that reads them counts 4096 bytes itself. */
async function usedBytes(): Promise<number> {
  const { body } = await sendRequest(serving.server.metricsPort, { path: "/metrics" });
  return Number(/^galatea_request_memory_used_bytes (\d+)$/m.exec(body.toString())?.[1] ?? Number.NaN) - 4096;
}

/** Checks repeatedly while `work` runs that memory stays within its limit, and that small requests and health checks succeed. */
async function whileWatched<Value>(work: Promise<Value>): Promise<Value> {
  const watch = new AbortController();
  const done = work.finally(() => watch.abort());
  do {
    const { pid } = serving.server;
    assert.ok(residentBytes(pid) < idleBytes + boundBytes + slackBytes, `resident: ${residentBytes(pid)}`);
    assert.ok(arenaBytes(pid) <= boundBytes + 8 * mebibyte, `arenas: ${arenaBytes(pid)}`);
    assert.equal((await sendRequest(port, { path: "/v2/health/live" })).status, 200);
    await assertEchoes(port, "faulty");
  } while (!watch.signal.aborted);
  return await done;
}

async function allComesBack(): Promise<void> {
  await until("no byte is in flight", async () => (await usedBytes()) === 0);
  await until("warm memory is released", () => arenaBytes(serving.server.pid) <= 24 * mebibyte);
}

const head = (path: string, headers: string) => `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;

test("memory stays bounded while hundreds of clients slowly send bodies of unknown length", async () => {
  const wires = await Promise.all(Array.from({ length: 300 }, () => Wire.open(port)));
  const chunk = Buffer.concat([Buffer.from("10000\r\n"), Buffer.alloc(65_536, " "), Buffer.from("\r\n")]);
  const work = (async () => {
    for (const wire of wires) wire.send(head(inferPath("faulty"), "Transfer-Encoding: chunked\r\n"));
    for (let round = 0; round < 24; round++) {
      for (const wire of wires) if (wire.socket.writable) wire.send(chunk);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await until("most have been refused", () => wires.filter((wire) => wire.ended).length > 100);
  })();
  await whileWatched(work);
  const replies = await Promise.all(wires.filter((wire) => wire.ended).map((wire) => wire.reply()));
  assert.deepEqual([...new Set(replies.map((reply) => reply?.status))], [503]);
  for (const wire of wires) wire[Symbol.dispose]();
  await allComesBack();
});

test("memory stays bounded while hundreds of clients announce large bodies and send little", async () => {
  const wires = await Promise.all(Array.from({ length: 200 }, () => Wire.open(port)));
  for (const wire of wires) wire.send(head(inferPath("faulty"), "Content-Length: 50000000\r\n") + '{"inputs":');
  await whileWatched(until("all but one have been refused", () => wires.filter((wire) => wire.ended).length === 199));
  for (const wire of wires) wire[Symbol.dispose]();
  await allComesBack();
});

test("memory stays bounded for small bodies that inflate to large ones", async () => {
  const bomb = gzipSync(Buffer.alloc(64 * mebibyte - 1, " "));
  const bombs = Array.from({ length: 60 }, () =>
    infer(port, "faulty", bomb, { headers: { "content-encoding": "gzip" } }),
  );
  const responses = await whileWatched(Promise.all(bombs));
  for (const response of responses)
    assert.ok(response.status === 503 || response.status === 413, response.body.toString());
  assert.ok(responses.some(({ headers }) => headers["retry-after"] === "1"));
  await allComesBack();
});

function large(bytes: number): { body: Buffer; headers: Record<string, string> } {
  const what = { name: "DO", datatype: "BYTES", shape: [1], data: ["echo"] };
  const value = { name: "VALUE", datatype: "FP32", shape: [bytes / 4], parameters: { binary_data_size: bytes } };
  const header = Buffer.from(JSON.stringify({ inputs: [what, value], parameters: { binary_data_output: true } }));
  return {
    body: Buffer.concat([header, Buffer.alloc(bytes)]),
    headers: { "inference-header-content-length": String(header.length) },
  };
}

test("when more large tensors arrive than fit, some requests succeed and the others get a retryable error", async () => {
  const { body, headers } = large(8 * mebibyte);
  const clients = Array.from({ length: 24 }, async () => {
    const responses: HttpResponse[] = [];
    for (let round = 0; round < 4; round++) responses.push(await infer(port, "faulty", body, { headers }));
    return responses;
  });
  const responses = (await whileWatched(Promise.all(clients))).flat();
  const count = (status: number) => responses.filter((response) => response.status === status).length;
  assert.equal(count(200) + count(503), responses.length);
  assert.ok(count(200) > 0);
  assert.ok(count(503) > 0);
  for (const response of responses) if (response.status === 503) assert.equal(response.headers["retry-after"], "1");
  await allComesBack();
});

test("memory stays bounded for clients that do not read their large responses", async () => {
  const { body, headers } = large(12 * mebibyte);
  const length = `Content-Length: ${body.length}\r\nInference-Header-Content-Length: ${headers["inference-header-content-length"]}\r\n`;
  const wires = await Promise.all(Array.from({ length: 12 }, () => Wire.open(port)));
  for (const wire of wires) {
    wire.socket.pause();
    wire.send(head(inferPath("faulty"), length));
    wire.send(body);
  }
  await whileWatched(until("memory is full of responses", async () => (await usedBytes()) > 24 * mebibyte));
  for (const wire of wires) wire[Symbol.dispose]();
  await allComesBack();
});

test("a client of a model whose outputs do not fit gets a retryable error, or a permanent one if they can never fit", async () => {
  const never = await infer(port, "generous", faultyRequest("x", { value: [boundBytes] }));
  assert.match(
    errorOf(never, 413),
    /^Failed to process the request\(s\) for model '.*', message: .*268435456 bytes exceed the memory for all requests in flight/,
  );
  using wire = await Wire.open(port);
  wire.send(`${head(inferPath("faulty"), "Content-Length: 50000000\r\n")}{"inputs":`);
  await until("the memory is reserved", async () => (await usedBytes()) > 40 * mebibyte);
  const later = await infer(port, "generous", faultyRequest("x", { value: [4 * mebibyte] }));
  assert.match(errorOf(later, 503), /message: .*memory for requests in flight is full: 16777216 bytes requested/);
  assert.equal(later.headers["retry-after"], "1");
  wire.socket.destroy();
  await allComesBack();
  const body = faultyRequest("x", { value: [1_000_000] });
  const now = await infer(port, "generous", `{"parameters":{"binary_data_output":true},${body.slice(1)}`);
  assert.equal(now.status, 200);
  await allComesBack();
});
