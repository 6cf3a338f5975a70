import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { request as ask, type ClientRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CloudWatchClient, ListMetricsCommand } from "@aws-sdk/client-cloudwatch";
import {
  CreateBucketCommand,
  GetObjectCommand,
  ListBucketsCommand,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { ListModelsCommand, SageMakerClient } from "@aws-sdk/client-sagemaker";
import { InvokeEndpointCommand, SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";
import { AssumeRoleCommand, GetCallerIdentityCommand, STSClient } from "@aws-sdk/client-sts";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { ByteBudget, createLogger, silentLogger } from "@galatea/base";
import { parseCredentialsFile, findKeySource, OwnerKeysError, readOwnerKeys } from "@galatea/aws/owner-keys";
import { parseFlags, upFlags, upOptions } from "../../options/index.ts";
import { credentialsPath, dataDirectories } from "../../data-directory/index.ts";
import { platformServerLimits } from "@galatea/aws/http-server";
import { openPlatform, type Platform } from "./platform.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

const key = { accessKeyId: "OWNER", secretAccessKey: "owner-secret" };
const memory = new ByteBudget(64 * 2 ** 20);
let root: string;
let platform: Platform;

const at = (credentials: { accessKeyId: string; secretAccessKey: string; sessionToken?: string } = key) => ({
  endpoint: platform.url,
  region: "us-east-1",
  credentials,
  maxAttempts: 1,
  forcePathStyle: true,
});

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gal-credentials-"));
  platform = await openPlatform({
    ...upOptions(parseFlags(["--port=0"], upFlags)),
    directories: dataDirectories(join(root, "data"), {}),
    keys: [key],
    proxySecret: "proxy-secret",
    log: silentLogger,
    environment: {},
    serverLimits: platformServerLimits,
    requestMemory: memory,
  });
  await new S3Client(at()).send(new CreateBucketCommand({ Bucket: "bkt" }));
  await new S3Client(at()).send(new PutObjectCommand({ Bucket: "bkt", Key: "k", Body: "text" }));
});

after(async () => {
  await platform[Symbol.asyncDispose]();
  await rm(root, { recursive: true, force: true });
});

/** Returns the outcome of a call to each service with these credentials. */
async function outcomes(credentials: { accessKeyId: string; secretAccessKey: string; sessionToken?: string }) {
  const told = (call: Promise<unknown>) =>
    call.then(
      () => "answered",
      (error: Error & { $metadata?: { httpStatusCode?: number } }) =>
        `${error.name} ${error.$metadata?.httpStatusCode}`,
    );
  const invoke = new InvokeEndpointCommand({ EndpointName: "none", Body: "x" });
  return {
    s3: await told(new S3Client(at(credentials)).send(new ListBucketsCommand({}))),
    sagemaker: await told(new SageMakerClient(at(credentials)).send(new ListModelsCommand({}))),
    runtime: await told(new SageMakerRuntimeClient(at(credentials)).send(invoke)),
    cloudwatch: await told(new CloudWatchClient(at(credentials)).send(new ListMetricsCommand({}))),
    sts: await told(new STSClient(at(credentials)).send(new GetCallerIdentityCommand({}))),
  };
}

const allAnswered = {
  s3: "answered",
  sagemaker: "answered",
  // The endpoint does not exist. This error shows that the signature was accepted.
  runtime: "ValidationError 400",
  cloudwatch: "answered",
  sts: "answered",
};

test("every service accepts requests that are signed with the platform's key, and rejects all others", async () => {
  assert.deepEqual(await outcomes(key), allAnswered);
  assert.deepEqual(await outcomes({ ...key, secretAccessKey: "another-secret" }), {
    s3: "SignatureDoesNotMatch 403",
    sagemaker: "InvalidSignatureException 403",
    runtime: "InvalidSignatureException 403",
    cloudwatch: "InvalidSignatureException 403",
    sts: "SignatureDoesNotMatch 403",
  });
  assert.deepEqual(await outcomes({ ...key, accessKeyId: "000000000000" }), {
    s3: "InvalidAccessKeyId 403",
    sagemaker: "UnrecognizedClientException 403",
    runtime: "UnrecognizedClientException 403",
    cloudwatch: "UnrecognizedClientException 403",
    sts: "InvalidClientTokenId 403",
  });
});

test("an unsigned request gets 403 for every operation, before its body is read", async () => {
  const target = { "content-type": "application/x-amz-json-1.1", "x-amz-target": "SageMaker.ListModels" };
  const liveTail = { ...target, "x-amz-target": "Logs_20140328.StartLiveTail" };
  for (const [method, path, headers] of [
    ["GET", "/", {}],
    ["GET", "/bkt/k", {}],
    ["PUT", "/bkt/other", {}],
    ["DELETE", "/bkt/k", {}],
    ["POST", "/", target],
    ["POST", "/", liveTail],
    ["POST", "/endpoints/e/invocations", {}],
    ["POST", "/?Action=ListRoles&Version=2010-05-08", { "content-type": "application/x-www-form-urlencoded" }],
  ] as const) {
    const body = method === "PUT" || method === "POST" ? "{}" : null;
    const { status } = await fetch(`${platform.url}${path}`, { method, headers, body });
    assert.equal(status, 403, `${method} ${path}`);
  }
});

test("bodies that wait for signature verification are limited to the request memory, which is released afterwards", async () => {
  const budget = memory.bytesMax;
  const acquired: ClientRequest[] = [];
  const credential = `${key.accessKeyId}/20260101/us-east-1/sagemaker/aws4_request`;
  const authorization = `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=host, Signature=${"0".repeat(64)}`;
  const begin = () => {
    const headers = { authorization, "content-length": 6 * 2 ** 20 };
    const outgoing = ask(`${platform.url}/endpoints/e/invocations`, { method: "POST", headers, agent: false });
    acquired.push(outgoing);
    outgoing.write("x");
    return new Promise<number>((resolve) => {
      outgoing
        .once("response", (response) => resolve(response.resume().statusCode ?? 0))
        .once("error", () => resolve(0));
    });
  };
  const responses = [];
  for (let count = 0; count <= Math.floor(budget / (6 * 2 ** 20)); count++) responses.push(begin());
  assert.equal(await Promise.race(responses), 503);
  for (const outgoing of acquired) outgoing.destroy();
  const signal = AbortSignal.timeout(testTimeoutMs);
  while (memory.usedBytes > 0) {
    signal.throwIfAborted();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(await outcomes(key), allAnswered);
});

test("a presigned URL gives access to its object and to no other", async () => {
  const url = await getSignedUrl(new S3Client(at()), new GetObjectCommand({ Bucket: "bkt", Key: "k" }));
  const response = await fetch(url);
  assert.equal(await response.text(), "text");
  assert.equal((await fetch(url.replace("/bkt/k", "/bkt/other"))).status, 403);
});

test("credentials from AssumeRole are accepted with their session token and rejected without it", async () => {
  const role = "arn:aws:iam::000000000000:role/AmazonSageMaker-DefaultRole";
  const requested = new AssumeRoleCommand({ RoleArn: role, RoleSessionName: "session" });
  const { Credentials: lent } = await new STSClient(at()).send(requested);
  const session = { accessKeyId: lent?.AccessKeyId ?? "", secretAccessKey: lent?.SecretAccessKey ?? "" };
  assert.deepEqual(await outcomes({ ...session, sessionToken: lent?.SessionToken ?? "" }), allAnswered);
  assert.deepEqual(
    new Set(Object.values(await outcomes(session))),
    new Set(["InvalidToken 400", "UnrecognizedClientException 403", "InvalidClientTokenId 403"]),
  );
});

test("a request that names one key and is signed with another is rejected", async () => {
  const expires = Math.floor(Date.now() / 1000) + 60;
  const signature = createHmac("sha1", key.secretAccessKey).update(`GET\n\n\n${expires}\n/bkt/k`).digest("base64");
  const query = new URLSearchParams({ AWSAccessKeyId: key.accessKeyId, Expires: `${expires}`, Signature: signature });
  assert.equal((await fetch(`${platform.url}/bkt/k?${query.toString()}`)).status, 200);
  query.set("X-Amz-Credential", "SOMEBODY/20260101/us-east-1/s3/aws4_request");
  const response = await fetch(`${platform.url}/bkt/k?${query.toString()}`);
  assert.equal(response.status, 400);
  assert.match(await response.text(), /The request names more than one access key/);
});

test("eight concurrent starts create one key for a data directory, in a file that only its owner can read", async () => {
  const path = credentialsPath(dataDirectories(join(root, "fresh"), {}));
  const source = findKeySource(null, {}, path);
  const all = await Promise.all(Array.from({ length: 8 }, () => readOwnerKeys(source, silentLogger)));
  assert.equal(new Set(all.map((keys) => JSON.stringify(keys))).size, 1);
  assert.deepEqual(await readOwnerKeys(source, silentLogger), all[0]);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.deepEqual(await readdir(join(root, "fresh")), ["credentials"]);
  const [{ accessKeyId, secretAccessKey }] = all[0] as NonNullable<(typeof all)[0]>;
  assert.match(accessKeyId, /^GALA[A-Z2-7]{16}$/);
  assert.ok(secretAccessKey.length >= 40);
  assert.match(await readFile(path, "utf8"), /^\[default\]\naws_access_key_id = GALA/);
});

test("a damaged credentials file is renamed, replaced by a new key, and logged", async () => {
  const path = join(root, "damaged", "credentials");
  const source = findKeySource(null, {}, path);
  await mkdir(join(root, "damaged"));
  await writeFile(path, "[defau");
  const reported: string[] = [];
  const [created] = await readOwnerKeys(
    source,
    createLogger((_, message) => reported.push(message)),
  );
  assert.deepEqual(await readOwnerKeys(source, silentLogger), [created]);
  assert.deepEqual(reported, ["the platform's credentials are damaged; they are kept aside and replaced by new ones"]);
  assert.equal((await readdir(join(root, "damaged"))).length, 2);
});

test("a credentials file is parsed as by the AWS tools, with the keys of every profile", async () => {
  const path = join(root, "keys");
  const text =
    "# two\n[default]\naws_access_key_id=AAAA\naws_secret_access_key = one=/+secret\n\n[ci]\nregion = x\n" +
    "aws_access_key_id = BBBB\naws_secret_access_key = two-secret\n[profile]\nregion = y\n";
  await writeFile(path, text);
  assert.deepEqual(await readOwnerKeys(findKeySource(path, { GALATEA_ACCESS_KEY_ID: "ignored" }, ""), silentLogger), [
    { accessKeyId: "AAAA", secretAccessKey: "one=/+secret" },
    { accessKeyId: "BBBB", secretAccessKey: "two-secret" },
  ]);
});

test("the error for invalid keys is one sentence that names the problem", () => {
  for (const [text, sentence] of [
    ["", /^f has no aws_access_key_id/],
    ["aws_access_key_id=AAAA\naws_secret_access_key=12345678", /^f has no aws_access_key_id/],
    ["[a]\naws_access_key_id=AAAA", /^the secret access key in f has to be 8 to 256/],
    ["[a]\naws_access_key_id=A/B C\naws_secret_access_key=12345678", /^the access key id in f has to be/],
    [
      "[a]\naws_access_key_id=AAAA\naws_secret_access_key=12345678\n[b]\naws_access_key_id=AAAA\naws_secret_access_key=87654321",
      /^f names one aws_access_key_id twice/,
    ],
  ] as const)
    assert.throws(
      () => parseCredentialsFile(text, "f"),
      (error) => error instanceof OwnerKeysError && sentence.test(error.message),
      text,
    );
  assert.throws(() => findKeySource(null, { GALATEA_ACCESS_KEY_ID: "AAAA" }, ""), OwnerKeysError);
});
