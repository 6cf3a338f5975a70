import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { test } from "node:test";
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { silentLogger, systemClock } from "@galatea/base";
import { openDirectoryStore } from "@galatea/hosting/objects";
import { createGateway } from "../../wire/index.ts";
import { WriterQuotas } from "./object-writers.ts";
import { s3Service } from "./service.ts";

const Bucket = "bkt";

/**
 * A clock on which counting objects takes no time. The quotas then count again whenever a writer seems to exceed its
 * quota.
 */
const stoppedClock = { ...systemClock, monotonicNs: () => 0 };

/** Opens S3 over a folder, for the owner and for the code of two endpoints. */
async function opened(folder: string, bytesMax: number) {
  await using opening = new AsyncDisposableStack();
  const store = opening.use(await openDirectoryStore({ folder, logger: silentLogger }));
  const writerOf = (id: string) => (id === "OWNER" ? null : id.toLowerCase());
  const writers = new WriterQuotas({ store, writerOf, bytesMax, clock: stoppedClock });
  const gateway = createGateway({
    services: [s3Service({ store, s3Domain: null, writers })],
    credentials: (accessKeyId) => ({
      accessKeyId,
      secretAccessKey: "secret",
      sessionToken: null,
      accountId: "111122223333",
      expiresMs: null,
    }),
    regionDefault: "us-east-1",
    accountIdDefault: "111122223333",
    logger: silentLogger,
  });
  const server = createServer();
  gateway.attach(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  opening.defer(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  const client = (accessKeyId: string) => {
    const endpoint = `http://127.0.0.1:${port}`;
    const credentials = { accessKeyId, secretAccessKey: "secret" };
    const created = new S3Client({ endpoint, region: "us-east-1", credentials, maxAttempts: 1, forcePathStyle: true });
    opening.defer(() => created.destroy());
    return created;
  };
  const parts = { port, owner: client("OWNER"), one: client("ONE"), two: client("TWO") };
  const moved = opening.move();
  return { ...parts, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}

async function folderOf(context: { after: (fn: () => Promise<void>) => void }): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "galatea-writers-"));
  context.after(() => rm(folder, { recursive: true }));
  return folder;
}

const put = (client: S3Client, Key: string, byteLength: number) =>
  client.send(new PutObjectCommand({ Bucket, Key, Body: Buffer.alloc(byteLength) }));

const isFull = (error: Error & { $metadata?: { httpStatusCode?: number } }) =>
  error.name === "InsufficientStorage" && error.$metadata?.httpStatusCode === 507;

test("an endpoint's code cannot store more bytes than its quota; the owner and other endpoints are unaffected", async (context) => {
  await using s3 = await opened(await folderOf(context), 100_000);
  await s3.owner.send(new CreateBucketCommand({ Bucket }));
  await put(s3.one, "a", 60_000);
  const message =
    "The quota of 'one' in the object store is exceeded: 64096 bytes are stored (with 4096 for the metadata of each object), " +
    "44096 more were requested, and the limit is 100000 bytes";
  await assert.rejects(put(s3.one, "b", 40_000), (error: Error) => isFull(error) && error.message === message);
  await assert.rejects(s3.owner.send(new HeadObjectCommand({ Bucket, Key: "b" })), { name: "NotFound" });
  await put(s3.two, "c", 60_000);
  await put(s3.owner, "d", 200_000);
  await put(s3.one, "a", 30_000);
  await put(s3.one, "b", 40_000);
});

test("an object stops counting against its writer's quota when it is deleted or overwritten by another; copies never count", async (context) => {
  await using s3 = await opened(await folderOf(context), 100_000);
  await s3.owner.send(new CreateBucketCommand({ Bucket }));
  await put(s3.one, "a", 90_000);
  await s3.owner.send(new CopyObjectCommand({ Bucket, Key: "copy", CopySource: "bkt/a" }));
  await s3.one.send(new DeleteObjectCommand({ Bucket, Key: "a" }));
  await put(s3.one, "a", 90_000);
  await assert.rejects(put(s3.one, "b", 90_000), isFull);
  await put(s3.owner, "a", 90_000);
  await put(s3.one, "b", 90_000);
  await assert.rejects(put(s3.one, "c", 90_000), isFull);
});

test("the writer of an object is not visible to clients and is still known after a restart", async (context) => {
  const folder = await folderOf(context);
  {
    await using s3 = await opened(folder, 100_000);
    await s3.owner.send(new CreateBucketCommand({ Bucket }));
    await put(s3.one, "a", 90_000);
    const response = new Promise<readonly string[]>((resolve) => {
      s3.owner.middlewareStack.add(
        (next) => async (input) => {
          const output = await next(input);
          resolve(Object.keys((output.response as { headers: Record<string, string> }).headers));
          return output;
        },
        { step: "deserialize" },
      );
    });
    const { Metadata } = await s3.owner.send(new HeadObjectCommand({ Bucket, Key: "a" }));
    assert.deepEqual(Metadata, {});
    assert.deepEqual(
      (await response).filter((name) => name.includes("galatea")),
      [],
    );
  }
  await using s3 = await opened(folder, 100_000);
  await assert.rejects(put(s3.one, "b", 90_000), isFull);
  await put(s3.two, "b", 90_000);
});

test("concurrent writes cannot exceed the quota, and a failed write releases its bytes", async (context) => {
  await using s3 = await opened(await folderOf(context), 100_000);
  await s3.owner.send(new CreateBucketCommand({ Bucket }));
  const wrong = new PutObjectCommand({ Bucket, Key: "wrong", Body: Buffer.alloc(90_000), ChecksumCRC32: "AAAAAA==" });
  await assert.rejects(s3.one.send(wrong), { name: "BadDigest" });
  const outcomes = await Promise.allSettled(Array.from({ length: 10 }, (_, index) => put(s3.one, `${index}`, 25_000)));
  assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 3);
  for (const each of outcomes) assert.ok(each.status === "fulfilled" || isFull(each.reason as Error));
});

test("the parts of an unfinished upload count against the writer's quota until the upload is completed or aborted", async (context) => {
  const mebi = 2 ** 20;
  await using s3 = await opened(await folderOf(context), 12 * mebi);
  await s3.owner.send(new CreateBucketCommand({ Bucket }));
  const { UploadId } = await s3.one.send(new CreateMultipartUploadCommand({ Bucket, Key: "u" }));
  const part = (PartNumber: number) =>
    s3.one.send(new UploadPartCommand({ Bucket, Key: "u", UploadId, PartNumber, Body: Buffer.alloc(5 * mebi) }));
  const { ETag } = await part(1);
  await part(2);
  await assert.rejects(part(3), isFull);
  await assert.rejects(put(s3.one, "a", 3 * mebi), isFull);
  const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] };
  await s3.one.send(new CompleteMultipartUploadCommand({ Bucket, Key: "u", UploadId, MultipartUpload }));
  await put(s3.one, "a", 3 * mebi);
  await assert.rejects(put(s3.one, "b", 5 * mebi), isFull);
  const second = await s3.one.send(new CreateMultipartUploadCommand({ Bucket, Key: "v" }));
  const input = { Bucket, Key: "v", UploadId: second.UploadId };
  await s3.one.send(new UploadPartCommand({ ...input, PartNumber: 1, Body: Buffer.alloc(3 * mebi) }));
  await assert.rejects(put(s3.one, "b", 3 * mebi), isFull);
  await s3.one.send(new AbortMultipartUploadCommand(input));
  await put(s3.one, "b", 3 * mebi);
});

test("a writer with a quota must declare the length of a body before it sends the body", async () => {
  const writers = new WriterQuotas({ store: { kept: () => [] }, writerOf: String, bytesMax: 1, clock: systemClock });
  await assert.rejects(writers.reserve("ONE", null), { code: "MissingContentLength", statusFallback: 411 });
});

test("the objects of a writer whose quota is full are counted again, which takes at most a twentieth of the time", async () => {
  let [nowNs, countings] = [0, 0];
  const clock = { ...systemClock, monotonicNs: () => nowNs };
  const kept = () => {
    countings += 1;
    nowNs += 10e6;
    return [{ headers: { "x-galatea-writer": "ONE" }, byteLength: 90_000, fileCount: 1 }];
  };
  const writers = new WriterQuotas({ store: { kept }, writerOf: String, bytesMax: 100_000, clock });
  const refused = () => assert.rejects(writers.reserve("ONE", 10_000), { code: "InsufficientStorage" });
  for (let requestCount = 0; requestCount < 100; requestCount += 1) await refused();
  assert.equal(countings, 1);
  nowNs += 200e6;
  for (let requestCount = 0; requestCount < 100; requestCount += 1) await refused();
  assert.equal(countings, 2);
});
