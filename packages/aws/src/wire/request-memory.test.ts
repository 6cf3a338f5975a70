import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import type { Hosting, InvocationRequest } from "@galatea/hosting";
import { sagemakerService } from "../services/sagemaker/index.ts";
import { runtimeService } from "../services/sagemaker-runtime/index.ts";
import { createGateway } from "./gateway.ts";

const budgetBytes = 1024 * 1024;

interface Serving extends AsyncDisposable {
  readonly budget: ByteBudget;
  readonly send: (head: string, body?: string | Uint8Array) => Promise<Socket>;
}

/** Serves a gateway whose endpoints read the body and return an empty response. */
async function serve(): Promise<Serving> {
  const budget = new ByteBudget(budgetBytes);
  const invoke = async (_name: string, _account: string, request: InvocationRequest) => {
    const body = await request.body();
    assert.ok(Buffer.isBuffer(body));
    const reported = { contentType: null, customAttributes: null, openedSession: null, closedSession: null };
    return { ...reported, variantName: "v", body: Buffer.from("ok"), byteLength: 2 };
  };
  const hosting = { invoke } as unknown as Hosting;
  const server = createServer();
  createGateway({
    services: [
      sagemakerService({ hosting }),
      runtimeService({
        hosting,
        requestBytesMax: 6 * 2 ** 20,
        streamAbort: new AbortController().signal,
        clock: systemClock,
      }),
    ],
    credentials: null,
    regionDefault: "us-east-1",
    accountIdDefault: "000000000000",
    logger: silentLogger,
    requestMemory: budget,
  }).attach(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const sockets: Socket[] = [];
  return {
    budget,
    async send(head, body = "") {
      const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
      sockets.push(socket);
      socket.on("error", () => {});
      socket.write(`${head}\r\nHost: 127.0.0.1\r\n\r\n`);
      socket.write(body);
      await once(socket, "connect");
      return socket;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      server.close();
      await eventually(() => budget.usedBytes === 0);
    },
  };
}

async function answerOf(socket: Socket): Promise<string> {
  const [chunk] = (await once(socket, "data")) as [Buffer];
  return chunk.toString("latin1");
}

const invocation = "POST /endpoints/e/invocations HTTP/1.1";
const operation = "POST / HTTP/1.1\r\nX-Amz-Target: SageMaker.ListModels\r\nContent-Type: application/x-amz-json-1.1";

test("requests whose bodies find no memory get a retryable error; others are served", async () => {
  await using serving = await serve();
  const holder = await serving.send(`${invocation}\r\nContent-Length: 900000`, "begun");
  await eventually(() => serving.budget.usedBytes === 900_000);
  for (const head of [invocation, operation]) {
    const refused = await answerOf(await serving.send(`${head}\r\nContent-Length: 200000`, "begun"));
    assert.match(refused, /^HTTP\/1\.1 503 /);
    assert.match(refused, /\r\nretry-after: 1\r\n/i);
    assert.match(refused, /memory for requests in flight is full: 200000 bytes requested, 900000 of 1048576 bytes/);
  }
  assert.match(await answerOf(await serving.send(`${invocation}\r\nContent-Length: 5`, "small")), /^HTTP\/1\.1 200 /);
  holder.write(Buffer.alloc(900_000 - 5));
  assert.match(await answerOf(holder), /^HTTP\/1\.1 200 /);
  await eventually(() => serving.budget.usedBytes === 0);
});

test("a body of unknown length reserves memory as it arrives", async () => {
  await using serving = await serve();
  const socket = await serving.send(`${invocation}\r\nTransfer-Encoding: chunked`);
  const response = answerOf(socket);
  for (let sent = 0; sent < 40; sent++) {
    socket.write(`8000\r\n${" ".repeat(32_768)}\r\n`);
    assert.ok(serving.budget.usedBytes <= budgetBytes);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.match(await response, /^HTTP\/1\.1 503 /);
});

const gzipOperation = (body: Buffer) => `${operation}\r\nContent-Encoding: gzip\r\nContent-Length: ${body.length}`;

test("a small gzip body that inflates beyond the memory limit is rejected at the limit, and its memory is released", async () => {
  await using serving = await serve();
  const bomb = gzipSync(Buffer.alloc(3 * 2 ** 20));
  assert.match(await answerOf(await serving.send(gzipOperation(bomb), bomb)), /^HTTP\/1\.1 503 /);
  await eventually(() => serving.budget.usedBytes === 0);
});

test("a gzip body reserves memory for its inflated size, not for the largest allowed body", async () => {
  await using serving = await serve();
  const small = gzipSync(Buffer.from(" ".repeat(100_000)));
  const response = await answerOf(await serving.send(gzipOperation(small), small));
  assert.doesNotMatch(response, /memory for/);
  assert.match(response, /^HTTP\/1\.1 400 /);
});

test("300 concurrent gzip bodies are rejected at the memory limit, and the next request finds all memory free", async () => {
  await using serving = await serve();
  const bomb = gzipSync(Buffer.alloc(3 * 2 ** 20));
  const sockets = await Promise.all(Array.from({ length: 300 }, () => serving.send(gzipOperation(bomb), bomb)));
  const responses = await Promise.all(sockets.map(answerOf));
  assert.ok(responses.every((response) => response.startsWith("HTTP/1.1 503 ")));
  await eventually(() => serving.budget.usedBytes === 0);
  const small = gzipSync(Buffer.from(" "));
  assert.doesNotMatch(await answerOf(await serving.send(gzipOperation(small), small)), /^HTTP\/1\.1 503 /);
});
