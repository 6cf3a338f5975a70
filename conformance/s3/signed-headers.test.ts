/** Presigned URLs of real clients, and headers that their holder adds to requests. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import {
  CreateBucketCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";
import { started, type StartedServer } from "./started-server.ts";

const credentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret" };
const signed = { key: [credentials.accessKeyId, credentials.secretAccessKey] } as const;

function clientOf(server: StartedServer): S3Client {
  return new S3Client({ endpoint: server.url, region: "us-east-1", credentials, forcePathStyle: true, maxAttempts: 1 });
}

async function stocked(server: StartedServer): Promise<S3Client> {
  const s3 = clientOf(server);
  await s3.send(new CreateBucketCommand({ Bucket: "bkt" }));
  await s3.send(new PutObjectCommand({ Bucket: "bkt", Key: "secret", Body: "nobody else's" }));
  return s3;
}

/** Presigned by boto3 1.x in both versions of signatures: `{name: url}`. */
async function presignedByBoto3(server: StartedServer): Promise<Readonly<Record<string, string>>> {
  const { python } = await ensureEnvironment(cacheDirectory(process.env), "clients");
  const program = `
import boto3, json, sys
from botocore.config import Config
urls = {}
for version in ("s3v4", "s3"):
    s3 = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="secret", config=Config(signature_version=version, s3={"addressing_style": "path"}))
    at = {"Bucket": "bkt", "Key": "by-" + version}
    urls["put " + version] = s3.generate_presigned_url("put_object", Params=at)
    urls["get " + version] = s3.generate_presigned_url("get_object", Params=at)
    urls["delete " + version] = s3.generate_presigned_url("delete_object", Params=at)
    urls["meta " + version] = s3.generate_presigned_url("put_object", Params={**at, "Metadata": {"a": "b"}, "ContentType": "text/x"})
print(json.dumps(urls))`;
  const { stdout } = await promisify(execFile)(python, ["-B", "-c", program, server.url]);
  return JSON.parse(stdout) as Record<string, string>;
}

/** Without the Content-Type that fetch adds for a text body. */
const bytes = (text: string) => new TextEncoder().encode(text);

const attacks = [
  { "x-amz-copy-source": "/bkt/secret" },
  { "x-amz-tagging": "owner=me" },
  { "x-amz-meta-owner": "me" },
  { "x-amz-website-redirect-location": "http://elsewhere" },
];

async function assertRefused(url: string, headers: Record<string, string>, method = "PUT"): Promise<void> {
  const reply = await fetch(url, { method, headers, body: bytes("x") });
  const text = await reply.text();
  assert.equal(reply.status, 403, text);
  assert.match(text, /<Code>(AccessDenied|SignatureDoesNotMatch)<\/Code>/);
}

test("a presigned PUT of the JavaScript SDK stores a body, and obeys no header that is added to it", async () => {
  await using server = await started(signed);
  const s3 = await stocked(server);
  const url = await getSignedUrl(s3, new PutObjectCommand({ Bucket: "bkt", Key: "mine" }));
  for (const headers of attacks) await assertRefused(url, headers);
  await assert.rejects(s3.send(new HeadObjectCommand({ Bucket: "bkt", Key: "mine" })), { name: "NotFound" });
  const reply = await fetch(url, { method: "PUT", headers: attacks[0]!, body: bytes("x") });
  assert.match(
    await reply.text(),
    /<Code>AccessDenied<\/Code><Message>There were headers present in the request which were not signed<\/Message><HeadersNotSigned>x-amz-copy-source<\/HeadersNotSigned>/,
  );
  assert.equal((await fetch(url, { method: "PUT", body: bytes("y") })).status, 200);
  const read = await getSignedUrl(s3, new GetObjectCommand({ Bucket: "bkt", Key: "mine" }));
  assert.equal(await (await fetch(read)).text(), "y");
  assert.equal(
    (await fetch(read, { headers: { range: "bytes=0-0", "x-amz-request-payer": "requester" } })).status,
    403,
  );
});

test("presigned URLs of boto3 work in both versions of signatures, with the headers that they sign", async () => {
  await using server = await started(signed);
  await stocked(server);
  const urls = await presignedByBoto3(server);
  for (const version of ["s3v4", "s3"]) {
    const url = (what: string) => urls[`${what} ${version}`]!;
    for (const headers of attacks) await assertRefused(url("put"), headers);
    assert.equal((await fetch(url("put"), { method: "PUT", body: bytes("plain") })).status, 200, version);
    assert.equal(await (await fetch(url("get"))).text(), "plain");
    const headers = { "x-amz-meta-a": "b", "content-type": "text/x" };
    assert.equal((await fetch(url("meta"), { method: "PUT", headers, body: bytes("more") })).status, 200, version);
    await assertRefused(url("meta"), { ...headers, "x-amz-copy-source": "/bkt/secret" });
    const read = await fetch(url("get"));
    assert.deepEqual([read.headers.get("x-amz-meta-a"), await read.text()], ["b", "more"]);
    assert.equal((await fetch(url("delete"), { method: "DELETE" })).status, 204);
  }
});
