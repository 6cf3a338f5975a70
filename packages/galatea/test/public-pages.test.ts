import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { request as ask } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  CloudWatchLogsClient,
  CreateLogGroupCommand,
  CreateLogStreamCommand,
  PutLogEventsCommand,
} from "@aws-sdk/client-cloudwatch-logs";
import { CloudWatchClient, PutMetricDataCommand } from "@aws-sdk/client-cloudwatch";
import { GetRoleCommand, IAMClient } from "@aws-sdk/client-iam";
import { GetObjectCommand, ListBucketsCommand, S3Client } from "@aws-sdk/client-s3";
import {
  CreateEndpointCommand,
  CreateEndpointConfigCommand,
  CreateModelCommand,
  SageMakerClient,
} from "@aws-sdk/client-sagemaker";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { GetCallerIdentityCommand, STSClient } from "@aws-sdk/client-sts";
import { parseFlags, upFlags, upOptions } from "../src/options/index.ts";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import { dataDirectories } from "../src/data-directory/index.ts";
import { createLogLinks } from "@galatea/aws/public-pages";
import { platformServerLimits } from "@galatea/aws/http-server";
import { openPlatform, type Platform } from "../src/app/platform/platform.ts";

const key = { accessKeyId: "OWNER", secretAccessKey: "owner-secret" };
const secret = "link-secret";
const group = "/aws/sagemaker/Endpoints/mine";
let root: string;
let platform: Platform;

function open(data: string, ...flags: string[]): Promise<Platform> {
  return openPlatform({
    ...upOptions(parseFlags(["--port=0", ...flags], upFlags)),
    directories: dataDirectories(join(root, data), {}),
    keys: [key],
    proxySecret: secret,
    log: silentLogger,
    environment: {},
    serverLimits: platformServerLimits,
    requestMemory: new ByteBudget(2 ** 30),
  });
}

const client = (of: Platform) => ({ endpoint: of.url, region: "us-east-1", credentials: key, maxAttempts: 1 });

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gal-pages-"));
  platform = await open("data", "--account=111122223333", "--region=eu-west-1");
  const logs = new CloudWatchLogsClient(client(platform));
  await logs.send(new CreateLogGroupCommand({ logGroupName: group }));
  for (const logStreamName of ["a/1", "a/2"]) {
    await logs.send(new CreateLogStreamCommand({ logGroupName: group, logStreamName }));
    const logEvents = [1, 2].map((count) => ({
      timestamp: Date.now() + count,
      message: `${logStreamName} <b>${count}`,
    }));
    await logs.send(new PutLogEventsCommand({ logGroupName: group, logStreamName, logEvents }));
  }
});

after(async () => {
  await platform[Symbol.asyncDispose]();
  await rm(root, { recursive: true, force: true });
});

function get(path: string, headers: Readonly<Record<string, string>> = {}, method = "GET") {
  return new Promise<{ status: number; type: string; body: string }>((resolve, reject) => {
    const request = ask(`${platform.url}${path}`, { method, headers, agent: false }, (response) => {
      let body = "";
      response
        .setEncoding("utf8")
        .on("data", (chunk: string) => (body += chunk))
        .on("end", () =>
          resolve({ status: response.statusCode ?? 0, type: String(response.headers["content-type"]), body }),
        );
    });
    request.once("error", reject).end();
  });
}

test("probes need no signature, by GET and HEAD", async () => {
  assert.deepEqual(await get("/ping"), { status: 200, type: "text/plain; charset=utf-8", body: "" });
  assert.deepEqual(await get("/health"), {
    status: 200,
    type: "application/json",
    body: '{"status":"ok","unconfined":{}}\n',
  });
  assert.equal((await get("/health", {}, "HEAD")).body, "");
});

test("Prometheus reads the platform's metrics without credentials, without names or secrets in them", async () => {
  const { status, type, body } = await get("/metrics");
  assert.equal(status, 200);
  assert.equal(type, "text/plain; version=0.0.4; charset=utf-8");
  for (const line of [
    /^galatea_endpoints\{status="InService"\} 0$/m,
    /^galatea_endpoints\{status="OutOfService"\} 0$/m,
    /^galatea_endpoints\{status="UpdateRollbackFailed"\} 0$/m,
    /^galatea_instances_in_service 0$/m,
    /^galatea_requests_total\{status="2xx"\} [1-9]/m,
    /^process_resident_memory_bytes [1-9]/m,
  ])
    assert.match(body, line);
  for (const line of body.trimEnd().split("\n"))
    assert.match(line, /^(?:# (?:HELP|TYPE) |\w+(?:\{(?:status|reason|what)="[\w-]+"\})? [\d.e+]+$)/);
  assert.doesNotMatch(body, /secret|OWNER|mine/);
});

test("endpoints' series are readable only with the owner's key as user name and password", async () => {
  const cloudwatch = new CloudWatchClient(client(platform));
  const minuteMs = Math.floor(Date.now() / 60_000) * 60_000;
  // Whichever minute is the last whole one when it is asked for.
  const MetricData = [minuteMs - 30_000, minuteMs].map((timeMs) => ({
    MetricName: "Latency",
    Value: 7,
    Timestamp: new Date(timeMs),
    Dimensions: [{ Name: "EndpointName", Value: 'mine"}\n' }],
  }));
  await cloudwatch.send(new PutMetricDataCommand({ Namespace: "Mine", MetricData }));
  cloudwatch.destroy();
  const { status, type, body } = await get("/metrics", basic(key.accessKeyId, key.secretAccessKey));
  assert.deepEqual([status, type], [200, "text/plain; version=0.0.4; charset=utf-8"]);
  assert.match(body, /^mine_latency_sum\{endpoint_name="mine\\"\}\\n"\} 7$/m);
  assert.match(body, /^galatea_instances_in_service 0$/m);
  for (const headers of [{}, basic(key.accessKeyId, "wrong"), basic("", ""), { authorization: "Basic ////" }]) {
    const other = await get("/metrics", headers);
    assert.equal(other.status, 200);
    assert.ok(!other.body.includes("mine_latency"));
  }
});

const basic = (name: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`,
});
const browser = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

async function deploy(name: string): Promise<void> {
  const sagemaker = new SageMakerClient(client(platform));
  const role = "arn:aws:iam::111122223333:role/AmazonSageMaker-DefaultRole";
  const image = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3";
  const container = { Image: image, ModelDataUrl: "s3://absent/<b>.tar.gz" };
  const variant = { VariantName: "v", ModelName: name, InstanceType: "ml.t2.medium", InitialInstanceCount: 1 } as const;
  const named = { EndpointConfigName: name };
  await sagemaker.send(
    new CreateModelCommand({ ModelName: name, PrimaryContainer: container, ExecutionRoleArn: role }),
  );
  await sagemaker.send(new CreateEndpointConfigCommand({ ...named, ProductionVariants: [variant] }));
  await sagemaker.send(new CreateEndpointCommand({ EndpointName: name, ...named }));
  sagemaker.destroy();
}

test("a local browser gets counts at /, and names and reasons with the owner's key", async () => {
  await deploy("tenant-a");
  const owner = { ...browser, ...basic(key.accessKeyId, key.secretAccessKey) };
  let page = await get("/", owner);
  await eventually(async () => (page = await get("/", owner)).body.includes("<td>tenant-a<td>Failed<td>"));
  assert.deepEqual([page.status, page.type], [200, "text/html; charset=utf-8"]);
  assert.match(page.body, /<h1>Galatea 0\.\S+<\/h1>/);
  assert.match(page.body, /s3:\/\/absent\/&lt;b&gt;\.tar\.gz/);
  for (const headers of [browser, { ...browser, ...basic(key.accessKeyId, "wrong") }]) {
    const figures = await get("/", headers);
    assert.deepEqual([figures.status, figures.type], [200, "text/html; charset=utf-8"]);
    assert.match(figures.body, /<th>endpoints<td>1 Failed/);
    assert.doesNotMatch(figures.body, /tenant-a|absent/);
    assert.equal((await get("/?sign-in", headers)).status, 401);
  }
  assert.match((await get("/?sign-in", owner)).body, /tenant-a/);
  const head = await fetch(`${platform.url}/?sign-in`, { headers: browser });
  assert.equal(head.headers.get("www-authenticate"), 'Basic realm="Galatea: access key ID and secret access key"');
  const { headers } = await fetch(platform.url, { headers: browser });
  assert.match(headers.get("content-security-policy") ?? "", /^default-src 'none'; style-src 'sha256-/);
});

test("clients that do not accept HTML get S3's response at /, signed or not", async () => {
  for (const headers of [{}, { accept: "*/*" }]) {
    const { status, type, body } = await get("/", headers);
    assert.deepEqual([status, type], [403, "application/xml"]);
    assert.match(body, /<Code>AccessDenied<\/Code>/);
  }
  const listed = await new S3Client({ ...client(platform), forcePathStyle: true }).send(new ListBucketsCommand({}));
  assert.deepEqual(listed.Buckets ?? [], []);
});

test("a signed request goes to S3, whatever the bucket's name", async () => {
  const call = new S3Client({ ...client(platform), forcePathStyle: true }).send(
    new GetObjectCommand({ Bucket: "metrics", Key: "x" }),
  );
  await assert.rejects(call, { name: "NoSuchBucket" });
  assert.equal((await get("/metrics/x")).status, 403);
  assert.equal((await get("/ping", {}, "PUT")).status, 403);
});

test("foreign web pages and unknown Host headers get no public page", async () => {
  for (const path of ["/", "/ping", "/health", "/metrics"]) {
    assert.equal((await get(path, { ...browser, host: "evil.example" })).status, 403);
    assert.equal((await get(path, { ...browser, "sec-fetch-site": "cross-site" })).status, 403);
  }
});

test("the log link of an error shows its endpoint's last lines, and requires its token", async () => {
  const links = createLogLinks({ url: platform.url, secret: () => secret, clock: systemClock });
  const { pathname, search, hash } = new URL(links.linkTo(group));
  assert.equal(hash, `#logEventViewer:group=${group}`);
  const { status, type, body } = await get(pathname + search);
  assert.equal(status, 200);
  assert.equal(type, "text/plain; charset=utf-8");
  const lines = body.split("\n").slice(2, -1);
  assert.deepEqual(lines.map((line) => line.replace(/^\S+ /, "")).toSorted(), [
    "a/1 a/1 <b>1",
    "a/1 a/1 <b>2",
    "a/2 a/2 <b>1",
    "a/2 a/2 <b>2",
  ]);
  assert.deepEqual(
    lines,
    lines.toSorted((a, b) => (a.slice(0, 24) < b.slice(0, 24) ? -1 : 1)),
  );
  for (const other of [
    pathname.replace("mine", "yours") + search,
    pathname + search.replace(/until=\d/, "until=9"),
    `${pathname}${search.slice(0, -1)}${search.endsWith("0") ? "1" : "0"}`,
    `${pathname}?until=99999999999999&token=`,
  ])
    assert.equal((await get(other)).status, 403, other);
  const absent = new URL(links.linkTo("/aws/sagemaker/Endpoints/absent"));
  assert.equal((await get(absent.pathname + absent.search)).status, 404);
});

test("account and region are the platform's settings, and its own role follows the account", async () => {
  for (const accountId of ["444455556666", "777788889999"]) {
    await using other = await open("moved", `--account=${accountId}`, "--region=eu-west-1");
    assert.equal((await new STSClient(client(other)).send(new GetCallerIdentityCommand({}))).Account, accountId);
    const requested = new GetRoleCommand({ RoleName: "AmazonSageMaker-DefaultRole" });
    const { Role } = await new IAMClient(client(other)).send(requested);
    assert.equal(Role?.Arn, `arn:aws:iam::${accountId}:role/AmazonSageMaker-DefaultRole`);
  }
});
