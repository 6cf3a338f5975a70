/** Requests that are rejected while their body is still being sent: the response arrives, and the connection is freed. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { until } from "../faults/until.ts";
import { started, type StartedServer } from "./started-server.ts";

const mebibyte = 2 ** 20;
const chunkedHeaders =
  "Content-Encoding: aws-chunked\r\nx-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\nx-amz-decoded-content-length: 5\r\n";

interface Refusal {
  readonly name: string;
  readonly line: string;
  readonly headers?: string;
  readonly body: Buffer;
  readonly result: RegExp;
}

const framed = (first: string, byteLength: number) =>
  Buffer.concat([Buffer.from(first), Buffer.alloc(byteLength, "x")]);

const refusals: readonly Refusal[] = [
  {
    name: "DeleteObjects with 3 MiB that are not XML",
    line: "POST /bkt?delete",
    body: Buffer.alloc(3 * mebibyte, "x"),
    result: /^HTTP\/1\.1 400 [^]*<Code>MalformedXML</,
  },
  {
    name: "CompleteMultipartUpload with a document of 8 MiB",
    line: "POST /bkt/k?uploadId=none",
    body: Buffer.alloc(8 * mebibyte, "x"),
    result: /^HTTP\/1\.1 400 [^]*<Code>MalformedXML</,
  },
  {
    name: "CreateBucket with a document of 8 MiB",
    line: "PUT /newbucket",
    body: Buffer.alloc(8 * mebibyte, "x"),
    result: /^HTTP\/1\.1 400 [^]*<Code>MalformedXML</,
  },
  {
    name: "PutObject into a missing bucket",
    line: "PUT /none/k",
    body: Buffer.alloc(8 * mebibyte, "x"),
    result: /^HTTP\/1\.1 404 [^]*<Code>NoSuchBucket</,
  },
  {
    name: "a chunk whose head is none, and 8 MiB more",
    line: "PUT /bkt/k",
    headers: chunkedHeaders,
    body: framed("zz\r\n", 8 * mebibyte),
    result: /^HTTP\/1\.1 400 [^]*<Code>IncompleteBody</,
  },
  {
    name: "8 MiB after the last chunk",
    line: "PUT /bkt/k",
    headers: chunkedHeaders,
    body: framed("5\r\nhello\r\n0\r\n\r\n", 8 * mebibyte),
    result: /^HTTP\/1\.1 400 [^]*<Code>IncompleteBody</,
  },
];

let server: StartedServer;
before(async () => {
  server = await started({});
  await fetch(`${server.url}/bkt`, { method: "PUT", headers: { Connection: "close" } });
});
after(() => server[Symbol.asyncDispose]());

const headOf = ({ line, headers = "", body }: Refusal) =>
  Buffer.from(
    `${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}Content-Length: ${body.byteLength}\r\n\r\n`,
  );

function connected(): Socket {
  const { hostname, port } = new URL(server.url);
  return connect(Number(port), hostname);
}

/**
 * Sends the whole request before it reads the response, as clients over blocking sockets do; then reads until the
 * server ends the connection.
 */
function exchange(request: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connected();
    const chunks: Buffer[] = [];
    socket.pause();
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.once("error", reject).once("close", () => resolve(Buffer.concat(chunks).toString()));
    socket.write(request, () => socket.resume());
  });
}

for (const refusal of refusals) {
  test(`${refusal.name}: the client that sends it all sees the refusal`, async () => {
    const response = await exchange(Buffer.concat([headOf(refusal), refusal.body]));
    assert.match(response, refusal.result);
    assert.equal((await fetch(`${server.url}/bkt/k`, { headers: { Connection: "close" } })).status, 404);
  });
}

test("a client that waits for 100 Continue and is refused may not use its connection again", async () => {
  const head = "PUT /none/k HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n";
  assert.match(await exchange(Buffer.from(head)), /^HTTP\/1\.1 404 [^]*\r\nConnection: close\r\n/);
});

test("a request without a body that is refused at once leaves its connection to the next", async () => {
  const refused = "GET /bkt?policy HTTP/1.1\r\nHost: x\r\n\r\n";
  const next = "GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  assert.match(await exchange(Buffer.from(refused + next)), /NotImplemented[^]*HTTP\/1\.1 404[^]*NoSuchBucket/);
});

test("a short document that is refused leaves its connection to the next request", async () => {
  const junk = "POST /bkt?delete HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\njunk";
  const next = "GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  assert.match(await exchange(Buffer.from(junk + next)), /MalformedXML[^]*HTTP\/1\.1 404[^]*NoSuchBucket/);
});

test("clients that disconnect in the middle of rejected bodies leave no socket and no file open", async () => {
  const openBefore = server.openFiles();
  const half = (refusal: Refusal) =>
    new Promise<void>((resolve) => {
      const socket = connected();
      socket.write(headOf(refusal));
      socket.write(refusal.body.subarray(0, refusal.body.byteLength / 2));
      socket.once("data", () => socket.end());
      socket.on("error", () => undefined).once("close", () => resolve());
    });
  await Promise.all(Array.from({ length: 10 }, () => refusals.map(half)).flat());
  await until("nothing is open that was not", () => server.openFiles().every((link) => openBefore.includes(link)));
});
