import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { test, type TestContext } from "node:test";
import {
  CreateBucketCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";
import { started, type StartedServer } from "./started-server.ts";

const credentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret" };

/** Registers every check of a file as a separate test. Resolves with their number. */
async function boto3Checks(context: TestContext, server: StartedServer, file: string): Promise<number> {
  const environment = await ensureEnvironment(cacheDirectory(process.env), "clients");
  const script = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(environment.python, ["-B", script, server.url, server.folder], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let count = 0;
  for await (const line of createInterface(child.stdout)) {
    const result = JSON.parse(line) as { check: string; ok: boolean; error?: string };
    count += 1;
    await context.test(result.check.replaceAll("_", " "), () => assert.ok(result.ok, result.error));
  }
  return count;
}

const signed = { key: [credentials.accessKeyId, credentials.secretAccessKey] };

test("boto3: every check passes against the gateway, in constant memory", async (context) => {
  await using server = await started(signed);
  const count = await boto3Checks(context, server, "./boto3_checks.py");
  assert.ok(count >= 40, `${count} checks ran`);
  const status = await readFile(`/proc/${server.process.pid}/status`, "utf8");
  const peakKib = Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]);
  assert.ok(peakKib < 400 * 1024, `the server's peak was ${peakKib} KiB while 150 MB objects passed`);
});

test("boto3: conditions are enforced, and rejections have the codes of S3", async (context) => {
  await using server = await started(signed);
  const count = await boto3Checks(context, server, "./boto3_refusals.py");
  assert.ok(count >= 15, `${count} checks ran`);
});

test("boto3: metadata, tags and checksums are stored with an object and returned as S3 returns them", async (context) => {
  await using server = await started(signed);
  const count = await boto3Checks(context, server, "./boto3_metadata.py");
  assert.ok(count >= 14, `${count} checks ran`);
});

test("JavaScript SDK: streamed and multipart uploads, listings, presigned URLs", async () => {
  await using server = await started(signed);
  const s3 = new S3Client({
    endpoint: server.url,
    region: "us-east-1",
    credentials,
    forcePathStyle: true,
    maxAttempts: 1,
  });
  await fetch(await getSignedUrl(s3, new PutObjectCommand({ Bucket: "none", Key: "k" })), {
    method: "PUT",
    body: "x",
  }).then(async (reply) => assert.match(await reply.text(), /NoSuchBucket/));
  await s3.send(new CreateBucketCommand({ Bucket: "bkt" }));
  const data = Buffer.alloc(23 * 2 ** 20, "galatea");
  const chunks = Array.from({ length: 23 }, (_, n) => data.subarray(n * 2 ** 20, (n + 1) * 2 ** 20));
  await new Upload({ client: s3, params: { Bucket: "bkt", Key: "multi", Body: Readable.from(chunks) } }).done();
  const back = await s3.send(new GetObjectCommand({ Bucket: "bkt", Key: "multi" }));
  assert.ok(data.equals(await buffer(back.Body as Readable)));
  const streamed = { Bucket: "bkt", Key: "streamed", Body: Readable.from(chunks), ContentLength: data.byteLength };
  await s3.send(new PutObjectCommand(streamed));
  const complete = await s3.send(new GetObjectCommand({ Bucket: "bkt", Key: "streamed" }));
  assert.equal(complete.ContentEncoding, undefined);
  assert.ok(data.equals(await buffer(complete.Body as Readable)));
  const url = await getSignedUrl(s3, new GetObjectCommand({ Bucket: "bkt", Key: "multi" }));
  assert.equal((await fetch(url)).status, 200);
  assert.equal((await fetch(url.replace("multi", "streamed"))).status, 403);
  const listed = await s3.send(new ListObjectsV2Command({ Bucket: "bkt" }));
  assert.deepEqual(
    listed.Contents?.map((object) => object.Key),
    ["multi", "streamed"],
  );
});

async function raw(url: string, text: string, end: boolean): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(text);
  if (end) socket.end();
  return (await buffer(socket)).toString();
}

test("an open server: truncated and misframed bodies leave nothing, virtual hosts and 100-continue work", async () => {
  await using server = await started({ domain: "s3.test" });
  assert.equal((await fetch(`${server.url}/bkt`, { method: "PUT" })).status, 200);
  await raw(server.url, "PUT /bkt/cut HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly this", true);
  assert.equal((await fetch(`${server.url}/bkt/cut`)).status, 404);
  const framed =
    "PUT /bkt/f HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Encoding: aws-chunked\r\nx-amz-decoded-content-length: 5\r\n";
  const chunked = (body: string) =>
    `${framed}x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\nx-amz-trailer: x-amz-checksum-crc32\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const good = "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n";
  assert.match(await raw(server.url, chunked(good.replace("NhCm", "AAAA")), false), /BadDigest/);
  assert.match(await raw(server.url, chunked(good.replace("hello", "hell")), false), /IncompleteBody/);
  assert.equal((await fetch(`${server.url}/bkt/f`)).status, 404);
  assert.match(await raw(server.url, chunked(good), false), /^HTTP\/1\.1 200/);
  assert.equal(await (await fetch(`${server.url}/bkt/f`)).text(), "hello");
  const hosted = await raw(server.url, "GET /f HTTP/1.1\r\nHost: bkt.s3.test:80\r\nConnection: close\r\n\r\n", false);
  assert.match(hosted, /hello$/);
  const waiting = "Host: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
  assert.match(
    await raw(server.url, `PUT /bkt/e HTTP/1.1\r\n${waiting}hello`, false),
    /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200/,
  );
  assert.match(await raw(server.url, `PUT /none/e HTTP/1.1\r\n${waiting}`, false), /^HTTP\/1\.1 404/);
});
