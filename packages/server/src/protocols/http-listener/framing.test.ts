/**
 * Tests of requests with stray bytes after their announced length. As in Triton, the stray bytes are dropped, and earlier requests get
 * their responses.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import { RawConnection, sendRawRequest } from "../raw-client.ts";
import { openHttpListener, readBodyToBuffer, reply, type Exchange } from "./index.ts";
import { usualHttpLimits } from "./limits-fixture.ts";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";

interface Serving extends AsyncDisposable {
  readonly port: number;
  /** The requests that reached the protocol. */
  readonly requested: readonly string[];
  /** Sends the responses to `/gate`. */
  readonly open: () => void;
  /** Resolves when a request for `/gate` has been cancelled. */
  readonly givenUp: Promise<void>;
  readonly entered: Promise<void>;
}

/** Opens a listener that responds to each request with its path and body. Responses to `/gate` are sent after a call of `open`. */
async function serve(): Promise<Serving> {
  const budget = new ByteBudget(2 ** 30);
  const asked: string[] = [];
  const opened = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  const givenUp = Promise.withResolvers<void>();
  const handle = async (exchange: Exchange) => {
    asked.push(`${exchange.method} ${exchange.path}`);
    const body = (await readBodyToBuffer(exchange, usualHttpLimits)).toString();
    if (exchange.path === "/gate") {
      exchange.signal.addEventListener("abort", () => givenUp.resolve());
      entered.resolve();
      await opened.promise;
      if (exchange.signal.aborted) return;
    }
    reply(exchange, 200, "text/plain", `${exchange.path}:${body}`);
  };
  const address = { host: "127.0.0.1", port: 0 };
  const listener = await openHttpListener({
    clock: systemClock,
    address,
    limits: usualHttpLimits,
    logger: silentLogger,
    budget,
    handle,
  });
  return {
    port: listener.port,
    requested: asked,
    open: opened.resolve,
    entered: entered.promise,
    givenUp: givenUp.promise,
    async [Symbol.asyncDispose]() {
      opened.resolve();
      await listener.close(AbortSignal.abort());
      await eventually(() => listener.activeCount === 0);
      assert.equal(budget.usedBytes, 0, "bytes left over");
    },
  };
}

const post = (path: string, body: string, lines = "") =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\n${lines}Content-Length: ${body.length}\r\n\r\n${body}`;

/** Returns all responses of a connection until it ends. */
async function replies(connection: RawConnection): Promise<string[]> {
  const all: string[] = [];
  for (;;) {
    const next = await connection.reply();
    if (next === null) return all;
    all.push(`${next.status} ${next.headers.get("connection") ?? "keep-alive"} ${next.body}`);
  }
}

for (const [name, sent] of [
  ["in the same chunk", [`${post("/gate", "body")}stray bytes\r\n\r\n`]],
  ["later", [post("/gate", "body"), "stray bytes\r\n\r\n"]],
  ["in several chunks", [post("/gate", "body"), "\u0000stray", "bytes".repeat(10_000), "\r\n\r\n"]],
] as const)
  test(`a request followed by stray bytes, ${name}, is answered, and the connection ends after the response`, async () => {
    await using serving = await serve();
    using connection = await RawConnection.open(serving.port);
    for (const segment of sent) connection.send(segment);
    await serving.entered;
    const received = replies(connection);
    // The stray bytes have been read when another connection, opened after them, has been served.
    await sendRawRequest(serving.port, post("/other", ""));
    serving.open();
    assert.deepEqual(await received, ["200 close /gate:body"]);
  });

test("all requests before stray bytes are answered in their order, the last one with Connection: close", async () => {
  await using serving = await serve();
  using connection = await RawConnection.open(serving.port);
  connection.send(`${post("/gate", "1")}${post("/second", "2")}${post("/third", "3")}stray bytes\r\n\r\n`);
  await serving.entered;
  serving.open();
  assert.deepEqual(await replies(connection), [
    "200 keep-alive /gate:1",
    "200 keep-alive /second:2",
    "200 close /third:3",
  ]);
});

test("a request after stray bytes never reaches the protocol", async () => {
  await using serving = await serve();
  using connection = await RawConnection.open(serving.port);
  connection.send(`${post("/gate", "body")}stray bytes\r\n\r\n${post("/smuggled", "")}`);
  await serving.entered;
  connection.send(post("/smuggled", ""));
  await sendRawRequest(serving.port, post("/other", ""));
  serving.open();
  await replies(connection);
  assert.deepEqual(serving.requested, ["POST /gate", "POST /other"]);
});

test("a client that disconnects after stray bytes is detected, and its request is cancelled", async () => {
  await using serving = await serve();
  using connection = await RawConnection.open(serving.port);
  connection.send(`${post("/gate", "body")}stray bytes\r\n\r\n`);
  await serving.entered;
  connection.socket.destroy();
  await serving.givenUp;
});

test("the error of a request with malformed chunks does not replace the previous response", async () => {
  await using serving = await serve();
  using connection = await RawConnection.open(serving.port);
  connection.send(
    `${post("/gate", "1")}POST /second HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n`,
  );
  await serving.entered;
  serving.open();
  assert.deepEqual(await replies(connection), ["200 close /gate:1"]);
});

test("an HTTP/1.0 request without a length has no body and is answered as an empty request", async () => {
  await using serving = await serve();
  for (const lines of ["", "Connection: keep-alive\r\n"]) {
    using connection = await RawConnection.open(serving.port);
    connection.send(`POST /infer HTTP/1.0\r\n${lines}\r\n{"inputs":[]}`);
    assert.deepEqual(await replies(connection), ["200 close /infer:"]);
  }
  using connection = await RawConnection.open(serving.port);
  connection.send('POST /infer HTTP/1.1\r\nHost: x\r\n\r\n{"inputs":[]}');
  assert.deepEqual(await replies(connection), ["200 close /infer:"]);
});

test("a Transfer-Encoding that does not end in chunked is rejected with 400, one with other codings with 501, and nothing after it is read", async () => {
  await using serving = await serve();
  const text = (value: string) =>
    `{"error":"Transfer-Encoding '${value}' is not supported: send 'chunked', or a Content-Length and no Transfer-Encoding"}`;
  for (const [method, value, status] of [
    ["GET", "identity", 400],
    ["POST", "identity", 400],
    ["POST", "gzip", 400],
    ["POST", "chunked, identity", 400],
    ["POST", "identity, chunked", 501],
    ["POST", "gzip, chunked", 501],
  ] as const) {
    using connection = await RawConnection.open(serving.port);
    connection.send(
      `${method} /infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ${value}\r\n\r\n0\r\n\r\n${post("/smuggled", "")}`,
    );
    assert.deepEqual(await replies(connection), [`${status} close ${text(value)}`], `${method} ${value}`);
  }
  assert.deepEqual(serving.requested, []);
  const chunked = "POST /infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
  assert.equal((await sendRawRequest(serving.port, chunked)).body, "/infer:hi");
});

test("Content-Length together with Transfer-Encoding is rejected with a text that names both, in either order", async () => {
  await using serving = await serve();
  const length = "Content-Length: 5\r\n";
  for (const coding of ["Transfer-Encoding: chunked\r\n", "Transfer-Encoding: identity\r\n"])
    for (const lines of [length + coding, coding + length]) {
      const response = await sendRawRequest(serving.port, `POST /infer HTTP/1.1\r\nHost: x\r\n${lines}\r\n0\r\n\r\n`);
      const body = '{"error":"Content-Length and Transfer-Encoding must not both be given"}';
      assert.deepEqual([response.status, response.body], [400, body], lines);
    }
  assert.deepEqual(serving.requested, []);
});

test("chunks in an HTTP/1.0 request are read, and the connection ends after the response even with keep-alive", async () => {
  await using serving = await serve();
  using connection = await RawConnection.open(serving.port);
  const head = "POST /infer HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n";
  connection.send(`${head}2\r\nhi\r\n0\r\n\r\n${post("/smuggled", "")}`);
  assert.deepEqual(await replies(connection), ["200 close /infer:hi"]);
  assert.deepEqual(serving.requested, ["POST /infer"]);
});
