import assert from "node:assert/strict";
import { once } from "node:events";
import {
  createServer,
  request,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { ChangeNotifier, silentLogger, systemClock } from "@galatea/base";
import { LeaderProxy } from "./leader-proxy.ts";

const open = new DisposableStack();
after(() => open.dispose());

async function listening(server: Server): Promise<string> {
  open.defer(() => server.closeAllConnections());
  open.defer(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;
const listenerOf = (handler: Handler): RequestListener => {
  return (incoming, response) => void handler(incoming, response);
};

/** A leader that can be replaced, and a proxy in front of it. */
async function proxied(handler: Handler) {
  const changes = new ChangeNotifier();
  const first = await listening(createServer(listenerOf(handler)).on("checkContinue", listenerOf(handler)));
  const leader = { url: first as string | null, changed: () => changes.nextChange() };
  const proxy = open.use(new LeaderProxy({ leader, clock: systemClock, logger: silentLogger }));
  const handle: RequestListener = (incoming, response) => proxy.handle(incoming, response);
  const url = await listening(createServer(handle).on("checkContinue", handle));
  const replace = (next: string | null) => {
    leader.url = next;
    changes.notify();
  };
  return { url, replace, first };
}

test("a request reaches the leader with its method, target, headers and body, and the response its client", async () => {
  const { url } = await proxied(async (incoming, response) => {
    const { method, url: target, rawHeaders } = incoming;
    const body = await text(incoming);
    response.writeHead(207, { "X-Of-Leader": "1" }).end(JSON.stringify({ method, target, rawHeaders, body }));
  });
  const headers = {
    Authorization: "AWS4-HMAC-SHA256 Credential=a",
    "X-Amz-Date": "20260101T000000Z",
    Connection: "close",
  };
  const sent = request(`${url}/a%2Fb?x=%20y`, { method: "PUT", headers }).end("abc");
  const [reply] = (await once(sent, "response")) as [IncomingMessage];
  assert.deepEqual([reply.statusCode, reply.headers["x-of-leader"]], [207, "1"]);
  const seen = JSON.parse(await text(reply)) as { rawHeaders: string[] } & Record<string, unknown>;
  assert.deepEqual([seen["method"], seen["target"], seen["body"]], ["PUT", "/a%2Fb?x=%20y", "abc"]);
  const pairs = seen.rawHeaders.flatMap((each, index) =>
    index % 2 === 0 ? [`${each}: ${seen.rawHeaders[index + 1]}`] : [],
  );
  for (const each of [
    "Authorization: AWS4-HMAC-SHA256 Credential=a",
    "X-Amz-Date: 20260101T000000Z",
    `Host: ${url.slice(7)}`,
  ])
    assert.ok(pairs.includes(each), pairs.join("\n"));
  assert.ok(pairs.includes("Via: 1.1 galatea-gateway"));
  assert.ok(!pairs.includes("Connection: close"));
});

test("a POST without a body has the length zero", async () => {
  const { url } = await proxied((incoming, response) => response.end(String(incoming.headers["content-length"])));
  const sent = request(url, { method: "POST" });
  sent.removeHeader("transfer-encoding");
  sent.end();
  const [reply] = (await once(sent, "response")) as [IncomingMessage];
  assert.equal(await text(reply), "0");
});

test("a client that expects 100-continue sends its body after the leader's, and never after the leader's rejection", async () => {
  const { url } = await proxied(async (incoming, response) => {
    if (incoming.url === "/no") response.writeHead(403).end("no");
    else {
      response.writeContinue();
      response.end(await text(incoming));
    }
  });
  const headers = { Expect: "100-continue", "Content-Length": 5 };
  const accepted = request(url, { method: "PUT", headers });
  accepted.flushHeaders();
  await once(accepted, "continue");
  accepted.end("12345");
  const [reply] = (await once(accepted, "response")) as [IncomingMessage];
  assert.equal(await text(reply), "12345");
  const rejected = request(`${url}/no`, { method: "PUT", headers }).on("error", () => {});
  let isContinued = false;
  rejected.on("continue", () => (isContinued = true));
  rejected.flushHeaders();
  const [refusal] = (await once(rejected, "response")) as [IncomingMessage];
  assert.deepEqual([refusal.statusCode, await text(refusal), isContinued], [403, "no", false]);
  rejected.destroy();
});

test("a leader that rejects a long body is heard, and the rest of the body is not sent", async () => {
  const { url } = await proxied((_incoming, response) => response.writeHead(413).end("too long"));
  const response = await fetch(url, { method: "PUT", body: "x".repeat(8 << 20) });
  assert.deepEqual([response.status, await response.text()], [413, "too long"]);
});

test("chunks of a response reach the client when the leader writes them", async () => {
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { url } = await proxied(async (_incoming, response) => {
    response.writeHead(200);
    response.flushHeaders();
    await first.promise;
    response.write("one");
    await second.promise;
    response.end("two");
  });
  const response = await fetch(url);
  const reader = response.body?.getReader();
  first.resolve();
  assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), "one");
  second.resolve();
  assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), "two");
});

test("a request that could not be sent waits for the next leader, which gets its whole body", async () => {
  const { url, replace } = await proxied(() => assert.fail("the former leader gets nothing"));
  const closed = createTcpServer().listen(0, "127.0.0.1");
  await once(closed, "listening");
  const refusing = `http://127.0.0.1:${(closed.address() as AddressInfo).port}`;
  closed.close();
  await once(closed, "close");
  replace(refusing);
  const waiting = fetch(url, { method: "PUT", body: "y".repeat(1 << 20) });
  const next = await listening(
    createServer(listenerOf(async (incoming, response) => response.end(String((await text(incoming)).length)))),
  );
  replace(next);
  assert.equal(await (await waiting).text(), String(1 << 20));
});

test("a request that the leader has begun is not sent again when the leader dies", async () => {
  let count = 0;
  const { url } = await proxied((incoming) => {
    count += 1;
    incoming.socket.destroy();
  });
  const response = await fetch(url, {
    method: "POST",
    headers: { "x-amz-target": "SageMaker.CreateModel" },
    body: "{}",
  });
  assert.deepEqual([response.status, response.headers.get("retry-after"), count], [503, "1", 1]);
  assert.match(await response.text(), /broke before a response. It may have performed the request/);
});

test("a response that ends early ends early for the client, too", async () => {
  const { url } = await proxied((_incoming, response) => {
    response.writeHead(200, { "Content-Length": 10 });
    response.write("half", () => response.destroy());
  });
  await assert.rejects(async () => await (await fetch(url)).text());
});

test("a client that disconnects ends its request at the leader", async () => {
  const [arrived, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { url } = await proxied((_incoming, response) => {
    response.once("close", ended.resolve);
    arrived.resolve();
  });
  const sent = request(url)
    .on("error", () => {})
    .end();
  await arrived.promise;
  sent.destroy();
  await ended.promise;
});

test("a URL of a leader that leads back to the gateway is rejected", async () => {
  const { url, replace } = await proxied(() => {});
  replace(url);
  const response = await fetch(url);
  assert.equal(response.status, 503);
  assert.match(await response.text(), /Set `galatea up --advertise-url` to its own/);
});
