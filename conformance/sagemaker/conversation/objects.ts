import assert from "node:assert/strict";
import type { AwsCalls } from "./client.ts";

/** Calls each operation of S3. */
export async function objects({ call, wait }: AwsCalls, name: string): Promise<void> {
  const bucket = { Bucket: `objects-${name}` };
  await call("s3", "CreateBucket", bucket);
  await wait("s3", "BucketExists", bucket);
  await call("s3", "HeadBucket", bucket);
  const { Buckets: buckets } = await call("s3", "ListBuckets", {});
  assert(buckets.some((each: { Name: string }) => each.Name === bucket.Bucket));
  // Buckets of us-east-1 have no location constraint.
  assert.equal((await call("s3", "GetBucketLocation", bucket))["LocationConstraint"] ?? null, null);
  assert.equal((await call("s3", "GetBucketVersioning", bucket))["Status"], undefined);

  const first = { ...bucket, Key: "a/first" };
  await call("s3", "PutObject", { ...first, Body: Buffer.from("body") });
  assert.equal((await call("s3", "HeadObject", first))["ContentLength"], 4);
  assert.equal(String((await call("s3", "GetObject", first))["Body"]), "body");
  await call("s3", "PutObjectTagging", { ...first, Tagging: { TagSet: [{ Key: "k", Value: "v" }] } });
  assert.deepEqual((await call("s3", "GetObjectTagging", first))["TagSet"], [{ Key: "k", Value: "v" }]);
  await call("s3", "DeleteObjectTagging", first);
  assert.deepEqual((await call("s3", "GetObjectTagging", first))["TagSet"], []);
  const source = `${bucket.Bucket}/a/first`;
  await call("s3", "CopyObject", { ...bucket, Key: "second", CopySource: source });
  assert.equal(String((await call("s3", "GetObject", { ...bucket, Key: "second" }))["Body"]), "body");
  const keys = (response: { Contents?: readonly { Key: string }[] }) => (response.Contents ?? []).map(({ Key }) => Key);
  assert.deepEqual(keys(await call("s3", "ListObjects", bucket)), ["a/first", "second"]);
  assert.deepEqual(keys(await call("s3", "ListObjectsV2", { ...bucket, Prefix: "a/" })), ["a/first"]);

  const third = { ...bucket, Key: "third" };
  const { UploadId } = await call("s3", "CreateMultipartUpload", third);
  const part = { ...third, UploadId };
  const { ETag } = await call("s3", "UploadPart", { ...part, PartNumber: 1, Body: Buffer.alloc(5 * 2 ** 20, "x") });
  const copied = await call("s3", "UploadPartCopy", { ...part, PartNumber: 2, CopySource: source });
  assert.equal((await call("s3", "ListParts", part))["Parts"].length, 2);
  assert.equal((await call("s3", "ListMultipartUploads", bucket))["Uploads"].length, 1);
  const Parts = [
    { PartNumber: 1, ETag },
    { PartNumber: 2, ETag: copied["CopyPartResult"].ETag },
  ];
  await call("s3", "CompleteMultipartUpload", { ...part, MultipartUpload: { Parts } });
  assert.equal((await call("s3", "HeadObject", third))["ContentLength"], 5 * 2 ** 20 + 4);
  const { UploadId: left } = await call("s3", "CreateMultipartUpload", third);
  await call("s3", "AbortMultipartUpload", { ...third, UploadId: left });
  assert.deepEqual((await call("s3", "ListMultipartUploads", bucket))["Uploads"] ?? [], []);

  await call("s3", "DeleteObject", first);
  await wait("s3", "ObjectNotExists", first);
  const Objects = [{ Key: "second" }, { Key: "third" }];
  assert.equal((await call("s3", "DeleteObjects", { ...bucket, Delete: { Objects } }))["Deleted"].length, 2);
  assert.deepEqual(keys(await call("s3", "ListObjectsV2", bucket)), []);
  await call("s3", "DeleteBucket", bucket);
  await wait("s3", "BucketNotExists", bucket);
}
