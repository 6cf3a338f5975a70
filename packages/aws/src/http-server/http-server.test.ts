import assert from "node:assert/strict";
import { request as ask, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import type { Gateway } from "@galatea/aws";
import { createPlatformServer, queueRequests, listenOn, platformServerLimits } from "./http-server.ts";

interface Held extends AsyncDisposable {
  readonly port: number;
  /** Paths of the requests that the gateway received, in order. */
  readonly handled: string[];
  readonly open: () => void;
  /** Resolves when `count` requests have reached the server. */
  arrived(count: number): Promise<void>;
  readonly close: (graceMs: number) => Promise<void>;
  readonly handOver: () => Promise<void>;
}

async function pending(): Promise<Held> {
  const { server, close, handOver } = createPlatformServer(platformServerLimits);
  const openTo = queueRequests(server);
  const handled: string[] = [];
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    handled.push(request.url ?? "");
    if (request.headers.expect === "100-continue") response.writeContinue();
    request.toArray().then(
      (chunks) => response.end(`${request.url} ${Buffer.concat(chunks).toString()}`),
      () => response.destroy(),
    );
  };
  const attach: Gateway["attach"] = (to) => void to.on("request", handle).on("checkContinue", handle);
  const state = { arrivedCount: 0, wake: () => {} };
  const count = () => {
    state.arrivedCount++;
    state.wake();
  };
  server.on("request", count).on("checkContinue", count);
  const url = await listenOn(server, { host: "127.0.0.1", port: 0 });
  return {
    port: Number(new URL(url).port),
    handled,
    open: () => openTo({ handle, attach }),
    close,
    handOver,
    async arrived(expected) {
      while (state.arrivedCount < expected) await new Promise<void>((resolve) => (state.wake = resolve));
    },
    [Symbol.asyncDispose]: () => close(0),
  };
}

async function send(port: number, path: string, body: string, expects = false): Promise<string> {
  const sending = ask({ port, path, method: "PUT", agent: false, headers: expects ? { expect: "100-continue" } : {} });
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    sending.once("response", resolve).once("error", reject);
  });
  if (expects) sending.once("continue", () => sending.end(body)).flushHeaders();
  else sending.end(body);
  return Buffer.concat(await (await response).toArray()).toString();
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket)).once("error", reject);
  });
}

test("requests that arrive before the platform is open wait, with their bodies, and are served once it is", async () => {
  await using server = await pending();
  const responses = Promise.all([
    send(server.port, "/plain", "a body"),
    send(server.port, "/large", "x".repeat(1_000_000)),
    send(server.port, "/expecting", "sent after 100", true),
  ]);
  await server.arrived(3);
  assert.deepEqual(server.handled, []);
  server.open();
  assert.deepEqual(await responses, ["/plain a body", `/large ${"x".repeat(1_000_000)}`, "/expecting sent after 100"]);
  assert.equal(await send(server.port, "/later", "1"), "/later 1");
  assert.equal(server.handled.length, 4, "each was handled once");
});

test("pipelined requests that waited are served in order", async () => {
  await using server = await pending();
  const socket = await connected(server.port);
  socket.write("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  await server.arrived(2);
  server.open();
  const text = Buffer.concat(await socket.toArray()).toString();
  assert.deepEqual(text.match(/\/\d /g), ["/1 ", "/2 "]);
});

test("the request of a client that has disconnected meanwhile is not executed", async () => {
  await using server = await pending();
  const socket = await connected(server.port);
  socket.write("DELETE /left HTTP/1.1\r\nHost: a\r\n\r\n");
  await server.arrived(1);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.resetAndDestroy();
  await closed;
  // The server processes the disconnection in its own event loop tick; this later request is answered after that.
  const response = send(server.port, "/stayed", "");
  await server.arrived(2);
  server.open();
  assert.equal(await response, "/stayed ");
  assert.deepEqual(server.handled, ["/stayed"]);
});

test("a closing server ends idle connections at once, and others after their responses", async () => {
  await using server = await pending();
  const [silent, idle, busy] = [
    await connected(server.port),
    await connected(server.port),
    await connected(server.port),
  ];
  const ended = (socket: Socket) => new Promise((resolve) => socket.once("close", resolve).resume());
  server.open();
  idle.write("GET /idle HTTP/1.1\r\nHost: a\r\n\r\n");
  await new Promise((resolve) => idle.once("data", resolve));
  busy.write("PUT /busy HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo");
  await server.arrived(2);
  const text = busy.toArray();
  const closed = server.close(60_000);
  await Promise.all([ended(silent), ended(idle)]);
  busy.write("dy");
  assert.match(Buffer.concat(await text).toString(), /\r\n\r\n\/busy body$/);
  await closed;
});

test("requests in flight when a server closes are aborted at the end of its grace period", async () => {
  await using server = await pending();
  const busy = await connected(server.port);
  server.open();
  busy.write("PUT /busy HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo");
  await server.arrived(1);
  await server.close(20);
  assert.deepEqual(await busy.toArray().catch(() => []), [], "no answer");
});

test("a server that hands over its sockets serves the next request of a connection and then closes it", async () => {
  await using server = await pending();
  const [used, unused] = [await connected(server.port), await connected(server.port)];
  server.open();
  used.write("GET /first HTTP/1.1\r\nHost: a\r\n\r\n");
  await new Promise((resolve) => used.once("data", resolve));
  const texts = Promise.all([used.toArray(), unused.toArray()]);
  const closed = server.handOver();
  for (const socket of [used, unused]) socket.write("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
  for (const text of await texts) assert.match(Buffer.concat(text).toString(), /\r\nconnection: close\r\n[^]*\/next /i);
  await closed;
});
