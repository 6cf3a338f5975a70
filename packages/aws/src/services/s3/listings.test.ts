/** Tests listings for callers that may not see every object of a bucket. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  CreateBucketCommand,
  ListObjectsCommand,
  ListObjectsV2Command,
  paginateListObjectsV2,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { silentLogger } from "@galatea/base";
import { openDirectoryStore } from "@galatea/hosting/objects";
import { createGateway } from "../../wire/index.ts";
import { s3Service } from "./service.ts";

const Bucket = "bkt";
const isHidden = (key: string) => key.includes("hidden");

/** Opens a bucket for a client that may see only keys without the text `hidden`. */
async function opened(keys: readonly string[]) {
  await using opening = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "galatea-listings-"));
  opening.defer(() => rm(folder, { recursive: true }));
  const store = opening.use(await openDirectoryStore({ folder, logger: silentLogger }));
  const gateway = createGateway({
    services: [
      s3Service({
        store,
        s3Domain: null,
        lists:
          () =>
          ({ key }) =>
            !isHidden(key),
      }),
    ],
    credentials: null,
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
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const credentials = { accessKeyId: "ONE", secretAccessKey: "secret" };
  const s3 = new S3Client({ endpoint, region: "us-east-1", credentials, maxAttempts: 1, forcePathStyle: true });
  opening.defer(() => s3.destroy());
  await s3.send(new CreateBucketCommand({ Bucket }));
  for (const Key of keys) await s3.send(new PutObjectCommand({ Bucket, Key, Body: "x" }));
  const moved = opening.move();
  return { s3, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}

const keys = ["a", "b/hidden/1", "b/hidden/2", "b/hidden/3", "c/hidden", "c/shown", "d-hidden", "e"];

test("pages and continuation tokens name only objects that the caller may see, and every page but the last is full", async () => {
  await using bucket = await opened(keys);
  const { s3 } = bucket;
  const listed: string[] = [];
  for await (const page of paginateListObjectsV2({ client: s3, pageSize: 1 }, { Bucket })) {
    assert.equal(page.KeyCount, 1);
    listed.push(...(page.Contents ?? []).map(({ Key = "" }) => Key));
    const token = Buffer.from(page.NextContinuationToken ?? "", "base64url").toString();
    assert.ok(!isHidden(token), token);
  }
  assert.deepEqual(listed, ["a", "c/shown", "e"]);
  const none = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: "b/", MaxKeys: 1 }));
  assert.deepEqual([none.KeyCount, none.IsTruncated], [0, false]);
  const old = await s3.send(new ListObjectsCommand({ Bucket, Marker: "a", MaxKeys: 1, Delimiter: "/" }));
  assert.deepEqual([old.CommonPrefixes, old.NextMarker], [[{ Prefix: "c/" }], "c/"]);
});

test("a common prefix is listed if the caller may see one of its objects, for every delimiter", async () => {
  await using bucket = await opened(keys);
  const prefixes = async (Delimiter: string) => {
    const page = await bucket.s3.send(new ListObjectsV2Command({ Bucket, Delimiter }));
    return (page.CommonPrefixes ?? []).map(({ Prefix }) => Prefix);
  };
  assert.deepEqual(await prefixes("/"), ["c/"]);
  assert.deepEqual(await prefixes("h"), ["c/sh"]);
  assert.deepEqual(await prefixes("-"), []);
});
