/**
 * Tests of a store on an S3 service that hangs, stalls, closes connections, or is slow. The service is a scripted HTTP
 * server.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createLogger } from "@galatea/base";
import { s3Durations, type S3Durations } from "./s3-connection.ts";
import { openS3Store } from "./s3-store.ts";

type Respond = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

const { signal } = new AbortController();
const credentials = { accessKeyId: "ONE", secretAccessKey: "secret" };
const from = (byteLength: number) => Readable.from([Buffer.alloc(byteLength, 7)]);
const unavailable = { code: "ServiceUnavailable", statusFallback: 503 };
const long = 2 ** 21;

/** Opens a store on a service that responds as `state.respond` does. */
async function opened(respond: Respond, durations: Partial<S3Durations> = {}) {
  const state = { respond, requests: [] as string[], logged: [] as string[] };
  const server = createServer({ requestTimeout: 0 }, (request, response) => {
    request.on("error", () => undefined);
    state.requests.push(`${request.method} ${request.url?.split("?")[0]}`);
    // A caller that aborts a request also aborts the response, so errors are ignored.
    void Promise.resolve(state.respond(request, response)).catch(() => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const folder = await mkdtemp(join(tmpdir(), "galatea-s3-faults-"));
  const store = await openS3Store({
    address: {
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      region: "us-east-1",
      credentials,
    },
    folder,
    processorCount: 1,
    logger: createLogger((_level, message) => void state.logged.push(message)),
    durations: { ...s3Durations, ...durations },
  });
  return {
    state,
    store,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      server.closeAllConnections();
      server.close();
      assert.deepEqual(await readdir(folder), [], "no body is open");
      await rm(folder, { recursive: true });
    },
  };
}

const hang: Respond = () => {};
const close: Respond = (request) => void request.socket.destroy();
/** Reads the body and responds that the object is written. */
const succeed: Respond = async (request, response) => {
  const body = await buffer(request);
  response.setHeader("etag", '"1"');
  response.setHeader("x-amz-meta-received", String(body.byteLength));
  response.end();
};
const refuse =
  (status: number, code: string): Respond =>
  (_request, response) =>
    void response.writeHead(status).end(`<Error><Code>${code}</Code><Message>${code}</Message></Error>`);

test("calls of a service that accepts connections and never responds fail with 503 at their deadline", async () => {
  await using on = await opened(hang, { connectMs: 50, deadlineMs: 100, repeatMs: 0 });
  const { store, state } = on;
  await assert.rejects(store.head("bkt", "k"), unavailable);
  await assert.rejects(store.get("bkt", "k"), unavailable);
  await assert.rejects(store.put("bkt", "k", from(10), { signal }), unavailable);
  await assert.rejects(store.put("bkt", "k", from(10), { signal, condition: { ifNoneMatch: "*" } }), unavailable);
  await assert.rejects(store.createBucket("bkt"), unavailable);
  assert.deepEqual(state.logged, ["the object store does not respond; its callers get 503"]);
});

test("while a service hangs, a long write fails without sending its body", async () => {
  await using on = await opened(hang, { connectMs: 50, deadlineMs: 100, repeatMs: 0 });
  const { store, state } = on;
  await assert.rejects(store.head("bkt", "k"), unavailable);
  state.requests.length = 0;
  await assert.rejects(store.put("bkt", "k", from(long), { signal }), unavailable);
  assert.deepEqual(state.requests, ["HEAD /bkt/"]);
});

test("a long write whose connection is silent fails after the idle time, and leaves no file", async () => {
  await using on = await opened(hang, { idleMs: 100, repeatMs: 0 });
  await assert.rejects(on.store.put("bkt", "k", from(long), { signal }), unavailable);
});

test("short and long writes are repeated after lost connections, with their whole bodies", async () => {
  for (const byteLength of [1000, long]) {
    let failureCount = 0;
    await using on = await opened(succeed, { repeatMs: 600_000 });
    on.state.respond = (request, response) => {
      if (request.method === "PUT" && (failureCount += 1) <= 3) return close(request, response);
      return succeed(request, response);
    };
    let received = "";
    const { respond } = on.state;
    on.state.respond = (request, response) => {
      response.on("finish", () => {
        if (request.method === "PUT") received = String(response.getHeader("x-amz-meta-received"));
      });
      return respond(request, response);
    };
    await on.store.put("bkt", "k", from(byteLength), { signal });
    assert.equal(received, String(byteLength));
    assert.deepEqual(on.state.logged, []);
  }
});

test("a conditional write is not repeated: the first attempt may have been made", async () => {
  await using on = await opened(close);
  const put = on.store.put("bkt", "k", from(long), { signal, condition: { ifNoneMatch: "*" } });
  await assert.rejects(put, unavailable);
  assert.deepEqual(on.state.requests, ["PUT /bkt/k"]);
});

test("a service that closes the connection of a write to a missing bucket gives NoSuchBucket", async () => {
  await using on = await opened((request, response) => {
    if (request.method === "PUT") return close(request, response);
    response.writeHead(404).end();
  });
  await assert.rejects(on.store.put("bkt", "k", from(long), { signal }), { code: "NoSuchBucket" });
});

test("an aborted caller does not wait for a hung service", async () => {
  await using on = await opened(hang);
  const aborter = new AbortController();
  const put = on.store.put("bkt", "k", from(long), { signal: aborter.signal });
  while (on.state.requests.length === 0) await delay(5);
  aborter.abort(new Error("gone"));
  await assert.rejects(put, /gone/);
});

test("a body that stalls in its middle fails after the idle time, and the log names the object", async () => {
  await using on = await opened(
    (_request, response) => {
      response.writeHead(200, { "content-length": 1000, etag: '"1"' });
      response.write(Buffer.alloc(10));
    },
    { idleMs: 100 },
  );
  const { body } = await on.store.get("bkt", "k");
  await assert.rejects(buffer(body), /timed out after 100 ms/);
  assert.deepEqual(on.state.logged, ["an object's bytes ended early"]);
});

test("a slow body arrives completely: the deadline ends with the first byte of the response", async () => {
  await using on = await opened(
    async (_request, response) => {
      response.writeHead(200, { "content-length": 50, etag: '"1"' });
      for (let n = 0; n < 50; n += 1) {
        response.write(Buffer.alloc(1, n));
        await delay(60);
      }
      response.end();
    },
    { deadlineMs: 2000 },
  );
  const { body } = await on.store.get("bkt", "k");
  assert.equal((await buffer(body)).byteLength, 50);
});

test("a clock that differs from the service's by an hour is corrected with one more call", async () => {
  const skewMs = 3_600_000;
  await using on = await opened((request, response) => {
    const date = String(request.headers["x-amz-date"]).replace(/^(....)(..)(..T..)(..)(..Z)$/, "$1-$2-$3:$4:$5");
    const now = Date.now() + skewMs;
    response.setHeader("date", new Date(now).toUTCString());
    if (Math.abs(Date.parse(date) - now) > 900_000) return refuse(403, "RequestTimeTooSkewed")(request, response);
    response.end('<?xml version="1.0"?><ListBucketResult></ListBucketResult>');
  });
  await on.store.list("bkt", { prefix: "", delimiter: "", startAfter: "", keysMax: 1 });
  assert.equal(on.state.requests.length, 2);
  assert.deepEqual(on.state.logged, []);
});

test("a service that responds again is used at once", async () => {
  await using on = await opened(refuse(503, "SlowDown"), { repeatMs: 0 });
  await assert.rejects(on.store.head("bkt", "k"), unavailable);
  on.state.respond = succeed;
  assert.equal((await on.store.head("bkt", "k")).etag, '"1"');
  assert.deepEqual(on.state.logged, [
    "the object store does not respond; its callers get 503",
    "the object store responds again",
  ]);
});
