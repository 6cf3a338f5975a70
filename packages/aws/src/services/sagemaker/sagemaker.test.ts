import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import {
  CreateEndpointCommand,
  CreateEndpointConfigCommand,
  CreateModelCommand,
  DeleteEndpointCommand,
  DeleteModelCommand,
  DescribeEndpointCommand,
  DescribeModelCommand,
  ListEndpointsCommand,
  ListModelsCommand,
  ListTagsCommand,
  SageMakerClient,
  UpdateEndpointCommand,
  paginateListModels,
  waitUntilEndpointDeleted,
  waitUntilEndpointInService,
} from "@aws-sdk/client-sagemaker";
import { InvokeEndpointCommand, SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";
import { Header } from "tar";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import { ArchiveUnpacker, archiveLimits, openDirectoryStore, unpackerDefaults } from "@galatea/hosting/objects";
import { Hosting, createDirectoryLogStreams, hostingLimits, instanceLimits, invocationLimits } from "@galatea/hosting";
import { InstanceKeys } from "@galatea/hosting/instance-keys";
import { nodeWith } from "@galatea/hosting/nodes/node-fixture.ts";
import { ProcessHost } from "@galatea/hosting/process-host";
import { InMemoryMetricStore } from "@galatea/base/metrics";
import { openDocuments } from "@galatea/hosting/records";
import { createGateway } from "../../wire/index.ts";
import { runtimeService } from "../sagemaker-runtime/index.ts";
import { sagemakerService } from "./index.ts";
import { eventually, testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
const root = mkdtempSync(join(tmpdir(), "gal-sm-"));
after(() => rmSync(root, { recursive: true, force: true }));
/**
 * A container that implements the container API in one file. It echoes requests, loads models with a file `answer`, and
 * keeps at most two models loaded.
 */
writeFileSync(
  join(root, "container.mjs"),
  `import { createServer } from "node:http";
  const parent = process.ppid; setInterval(() => process.ppid === parent || process.exit(), 1000).unref(); // Killed tests leave none.
  import { readFileSync, existsSync } from "node:fs";
  const [socketPath, mlRoot] = process.argv.slice(2);
  const multi = process.env.SAGEMAKER_MULTI_MODEL === "true";
  if (!multi && existsSync(mlRoot + "/model/broken")) { console.error("the model is broken"); process.exit(1); }
  const models = new Map();
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    const send = (status, text, headers = {}) => { response.writeHead(status, headers); response.end(text); };
    const [, , id, verb] = request.url.split("/");
    if (request.url === "/ping") return send(200, "");
    if (request.method === "POST" && request.url === "/models") {
      const { model_name, url } = JSON.parse(body);
      const path = url.replace("/opt/ml", mlRoot) + "/answer";
      if (!existsSync(path)) return send(400, '{"error":"no answer in the archive"}');
      if (models.size >= 2) return send(507, '{"error":"out of memory"}');
      models.set(model_name, readFileSync(path, "utf8"));
      return send(200, "", { "X-Galatea-Model-Bytes": "1000" });
    }
    if (request.method === "DELETE") return send(models.delete(id) ? 200 : 404, "");
    if (verb === "invoke" && !models.has(id)) return send(404, "");
    const text = body.toString();
    if (text === "die") process.exit(7);
    if (text === "bad") return send(400, '{"error":"bad input"}');
    const answer = verb === "invoke" ? models.get(id) : readFileSync(mlRoot + "/model/answer", "utf8");
    send(200, answer + ":" + (text.length > 1000 ? text.length : text), { "content-type": request.headers["content-type"] ?? "none",
      "x-amzn-sagemaker-custom-attributes": request.headers["x-amzn-sagemaker-custom-attributes"] ?? "" });
  });
  process.on("SIGTERM", () => process.exit(0));
  server.listen(socketPath);`,
);

const never = new AbortController().signal;
const image = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3";
const roleArn = "arn:aws:iam::000000000000:role/Test";

function archive(files: Readonly<Record<string, string>>): Buffer {
  const chunks = Object.entries(files).flatMap(([path, text]) => {
    const bytes = Buffer.from(text);
    const header = new Header({ path: `./${path}`, type: "File", size: bytes.length, mode: 0o644, mtime: new Date(0) });
    header.encode();
    assert(header.block);
    return [header.block, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...chunks, Buffer.alloc(1024)]), { level: 0 });
}

async function openPlatform(directory: string) {
  const store = await openDirectoryStore({ folder: join(directory, "objects"), logger: silentLogger });
  const documents = await openDocuments({ path: join(directory, "records.sqlite"), logger: silentLogger });
  const common = { clock: systemClock, logger: silentLogger };
  const logLimits = { streamBytesMax: 1e6, streamsMax: 100, groupsMax: 100 };
  const logs = createDirectoryLogStreams({ directory: join(directory, "logs"), ...common, ...logLimits });
  const contentDirectory = join(directory, "content");
  const unpacker = new ArchiveUnpacker({ ...unpackerDefaults, contentDirectory, limits: archiveLimits });
  const series = new InMemoryMetricStore({ clock: systemClock, seriesMax: 1000, bytesMax: 1e8 });
  const host = new ProcessHost({
    commandFor: ({ spec, mlRoot, socketPath }) => ({
      command: process.execPath,
      args: [join(root, "container.mjs"), socketPath, mlRoot],
      env: { ...spec.environment },
    }),
    socketsDirectory: join(directory, "s"),
    instancesDirectory: join(directory, "instances"),
    store,
    unpacker,
    ...common,
  });
  const hosting = await Hosting.open({
    documents,
    limits: hostingLimits,
    nodes: [nodeWith()],
    random: Math.random,
    alarmState: () => null,
    fleet: {
      host,
      store,
      openSeries: (key) => series.recorder(key),
      openLog: (group, stream) => logs.writer(group, stream),
      logsLink: (group) => `http://localhost/#logEventViewer:group=${group}`,
      credentials: await InstanceKeys.open({ documents, platformUrl: "", randomBytes, logger: silentLogger }),
      requestMemory: new ByteBudget(2 ** 30),
      instanceLimits: { ...instanceLimits, restartDelayMsMin: 10, stopGraceMs: 2000 },
      invocationLimits,
      ...common,
    },
  });
  await hosting.resume();
  const gateway = createGateway({
    services: [
      sagemakerService({ hosting }),
      runtimeService({ hosting, ...invocationLimits, streamAbort: new AbortController().signal, clock: systemClock }),
    ],
    credentials: null,
    regionDefault: "us-east-1",
    accountIdDefault: "000000000000",
    logger: silentLogger,
  });
  const server = createServer();
  gateway.attach(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const configuration = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "k", secretAccessKey: "s" },
    maxAttempts: 1,
  };
  const sagemaker = new SageMakerClient(configuration);
  const runtime = new SageMakerRuntimeClient(configuration);
  return {
    url: configuration.endpoint,
    store,
    hosting,
    series,
    sagemaker,
    runtime,
    invoke: async (EndpointName: string, Body: string, more: object = {}) => {
      const reply = await runtime.send(new InvokeEndpointCommand({ EndpointName, Body, ...more }));
      return { ...reply, text: Buffer.from(reply.Body ?? []).toString() };
    },
    put: async (key: string, files: Readonly<Record<string, string>>) => {
      await store.put("models", key, Readable.from([archive(files)]), { signal: never });
    },
    async [Symbol.asyncDispose]() {
      sagemaker.destroy();
      runtime.destroy();
      server.closeAllConnections();
      server.close();
      await hosting[Symbol.asyncDispose]();
      await host[Symbol.asyncDispose]();
      await unpacker[Symbol.asyncDispose]();
      await logs[Symbol.asyncDispose]();
      await documents[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

const waiter = (client: SageMakerClient) => ({ client, maxWaitTime: testTimeoutMs / 1000, minDelay: 1, maxDelay: 1 });

type Platform = Awaited<ReturnType<typeof openPlatform>>;

async function deploy(platform: Platform, name: string, container: object, wait = true): Promise<void> {
  const { sagemaker } = platform;
  const PrimaryContainer = { Image: image, ...container };
  await sagemaker.send(new CreateModelCommand({ ModelName: name, ExecutionRoleArn: roleArn, PrimaryContainer }));
  const ProductionVariants = [
    { VariantName: "AllTraffic", ModelName: name, InitialInstanceCount: 1, InstanceType: "ml.m5.xlarge" as const },
  ];
  await sagemaker.send(new CreateEndpointConfigCommand({ EndpointConfigName: name, ProductionVariants }));
  const Tags = [{ Key: "team", Value: "a" }];
  await sagemaker.send(new CreateEndpointCommand({ EndpointName: name, EndpointConfigName: name, Tags }));
  if (wait) await waitUntilEndpointInService(waiter(sagemaker), { EndpointName: name });
}

/** Returns DescribeEndpoint's output once the endpoint is in a stable state. */
async function settled({ hosting, sagemaker }: Platform, EndpointName: string) {
  await hosting.waitUntilStable(EndpointName, { waitMsMax: testTimeoutMs, signal: never });
  return sagemaker.send(new DescribeEndpointCommand({ EndpointName }));
}

const failure = (pending: Promise<unknown>) =>
  pending.then(
    () => assert.fail("the call succeeded"),
    (thrown: Error & Record<string, unknown>) => thrown,
  );

test("a multi-model endpoint is created, invoked, updated and deleted with the AWS SDK", async () => {
  await using platform = await openPlatform(join(root, "multi"));
  await platform.store.createBucket("models");
  await platform.put("tenants/a.tar.gz", { answer: "A" });
  await platform.put("tenants/b/c d.tar.gz", { answer: "B" });
  await platform.put("tenants/e.tar.gz", { answer: "E" });
  await platform.put("tenants/bad.tar.gz", { question: "?" });
  await deploy(platform, "Multi", { Mode: "MultiModel", ModelDataUrl: "s3://models/tenants/" });

  const cold = await platform.invoke("Multi", "x", {
    TargetModel: "a.tar.gz",
    ContentType: "text/plain",
    CustomAttributes: "c",
  });
  assert.equal(cold.text, "A:x");
  assert.equal(cold.ContentType, "text/plain");
  assert.equal(cold.CustomAttributes, "c");
  assert.equal(cold.InvokedProductionVariant, "AllTraffic");
  assert.equal((await platform.invoke("Multi", "y", { TargetModel: "b/c d.tar.gz" })).text, "B:y");
  // The container keeps at most two models loaded. It responds to the third load with 507, and the agent unloads
  // another model.
  assert.equal((await platform.invoke("Multi", "z", { TargetModel: "e.tar.gz" })).text, "E:z");

  await platform.put("tenants/e.tar.gz", { answer: "E2" });
  assert.equal((await platform.invoke("Multi", "z", { TargetModel: "e.tar.gz" })).text, "E2:z");
  await platform.store.delete("models", "tenants/e.tar.gz");
  const removed = await failure(platform.invoke("Multi", "z", { TargetModel: "e.tar.gz" }));
  assert.equal(removed.name, "ValidationError");
  assert.match(
    removed.message,
    /^Failed to download model data\(bucket: models, key: tenants\/e.tar.gz\)\. Please ensure/,
  );
  const bad = await failure(platform.invoke("Multi", "z", { TargetModel: "bad.tar.gz" }));
  assert.equal(bad.name, "ModelError");
  assert.equal(bad.OriginalStatusCode, 400);
  assert.match(String(bad.OriginalMessage), /no answer in the archive/);
  const without = await failure(platform.invoke("Multi", "z"));
  assert.match(without.message, /is a multi-model endpoint/);

  const dimensions = [
    { name: "EndpointName", value: "Multi" },
    { name: "VariantName", value: "AllTraffic" },
  ];
  const query = { startMs: 0, endMs: Date.now() + 1e6, periodMs: Date.now() + 1e6, unit: null };
  const hits = await platform.series.query(
    { namespace: "AWS/SageMaker", metricName: "ModelCacheHit", dimensions },
    query,
  );
  assert(hits[0] !== undefined && hits[0].sampleCount >= 4 && hits[0].sum === 0);
  const wait = await platform.series.query(
    { namespace: "AWS/SageMaker", metricName: "ModelLoadingWaitTime", dimensions },
    query,
  );
  assert.equal(wait[0]?.unit, "Microseconds");
});

test("a single-model endpoint reports model errors, recovers from a crash, and can be updated and deleted", async () => {
  await using platform = await openPlatform(join(root, "single"));
  const { sagemaker } = platform;
  await platform.store.createBucket("models");
  await platform.put("one.tar.gz", { answer: "1" });
  await platform.put("broken.tar.gz", { broken: "" });
  await platform.put("two.tar.gz", { answer: "2" });
  await deploy(platform, "Single", { ModelDataUrl: "s3://models/one.tar.gz" });
  assert.equal((await platform.invoke("Single", "x")).text, "1:x");
  assert.equal((await platform.invoke("single", "x".repeat(3_000_000))).text, "1:3000000");

  const client = await failure(platform.invoke("Single", "bad"));
  assert.equal(client.name, "ModelError");
  assert.match(
    client.message,
    /^Received client error \(400\) from primary with message "\{"error":"bad input"\}"\. See .*#logEventViewer:group=\/aws\/sagemaker\/Endpoints\/Single in account 000000000000 for more information\.$/,
  );
  const target = await failure(platform.invoke("Single", "x", { TargetModel: "a" }));
  assert.equal(
    target.message,
    "Endpoint Single is not a multi-model endpoint and does not support target model header.",
  );
  const unknown = await failure(platform.invoke("Nobody", "x"));
  assert.equal(unknown.message, "Endpoint Nobody of account 000000000000 not found.");
  const long = await failure(platform.invoke("Single", "x".repeat(6_291_457)));
  assert.equal((long.$metadata as { httpStatusCode: number }).httpStatusCode, 413);

  // The container exits during a request: that request fails, and the next one waits for the new container.
  const died = await failure(platform.invoke("Single", "die"));
  assert.match(died.message, /Received server error/);
  assert.equal((await platform.invoke("Single", "x")).text, "1:x");

  await deploy(platform, "Broken", { ModelDataUrl: "s3://models/broken.tar.gz" }, false);
  const failed = await settled(platform, "Broken");
  assert.equal(failed.EndpointStatus, "Failed");
  assert.match(
    failed.FailureReason ?? "",
    /^The primary container for production variant AllTraffic did not pass the ping health check. Please check CloudWatch logs for this endpoint.*the model is broken/s,
  );
  await deploy(platform, "Missing", { ModelDataUrl: "s3://models/nothing.tar.gz" }, false);
  const missing = await settled(platform, "Missing");
  assert.match(
    missing.FailureReason ?? "",
    /^Failed to download model data for container "container_1" from URL: "s3:/,
  );

  await sagemaker.send(new UpdateEndpointCommand({ EndpointName: "Single", EndpointConfigName: "Broken" }));
  const rolledBack = await settled(platform, "Single");
  assert.deepEqual([rolledBack.EndpointStatus, rolledBack.EndpointConfigName], ["InService", "Single"]);
  assert.match(rolledBack.FailureReason ?? "", /the model is broken/);
  assert.equal((await platform.invoke("Single", "x")).text, "1:x");
  const two = { Image: image, ModelDataUrl: "s3://models/two.tar.gz" };
  await sagemaker.send(new CreateModelCommand({ ModelName: "Two", ExecutionRoleArn: roleArn, PrimaryContainer: two }));
  const ProductionVariants = [{ VariantName: "AllTraffic", ModelName: "Two", InitialInstanceCount: 1 }];
  await sagemaker.send(new CreateEndpointConfigCommand({ EndpointConfigName: "Two", ProductionVariants }));
  await sagemaker.send(new UpdateEndpointCommand({ EndpointName: "Single", EndpointConfigName: "Two" }));
  const updated = await settled(platform, "Single");
  assert.deepEqual([updated.EndpointStatus, updated.EndpointConfigName], ["InService", "Two"]);
  assert.equal((await platform.invoke("Single", "x")).text, "2:x");

  const tags = await sagemaker.send(new ListTagsCommand({ ResourceArn: updated.EndpointArn }));
  assert.deepEqual(tags.Tags, [{ Key: "team", Value: "a" }]);
  const listed = await sagemaker.send(
    new ListEndpointsCommand({ StatusEquals: "Failed", SortBy: "Name", SortOrder: "Ascending" }),
  );
  assert.deepEqual(
    listed.Endpoints?.map(({ EndpointName }) => EndpointName),
    ["Broken", "Missing"],
  );

  for (const EndpointName of ["Single", "Broken", "Missing"]) {
    await sagemaker.send(new DeleteEndpointCommand({ EndpointName }));
    await waitUntilEndpointDeleted(waiter(sagemaker), { EndpointName });
  }
  // The instances that an update replaced are stopped in the background.
  const left = () => [...readdirSync(join(root, "single", "instances")), ...readdirSync(join(root, "single", "s"))];
  await eventually(() => left().length === 0);
});

test("errors for existing, missing and unsupported resources have SageMaker's texts", async () => {
  await using platform = await openPlatform(join(root, "words"));
  const { sagemaker } = platform;
  const create = (PrimaryContainer: object, ModelName = "M") =>
    sagemaker.send(new CreateModelCommand({ ModelName, ExecutionRoleArn: roleArn, PrimaryContainer }));
  await create({ Image: image });
  const described = await sagemaker.send(new DescribeModelCommand({ ModelName: "M" }));
  assert.equal(described.ModelArn, "arn:aws:sagemaker:us-east-1:000000000000:model/m");
  assert.equal(described.PrimaryContainer?.Image, image);
  const table: [Promise<unknown>, RegExp][] = [
    [
      create({ Image: image }, "m"),
      /^Cannot create already existing model "arn:aws:sagemaker:us-east-1:000000000000:model\/m"/,
    ],
    [create({ Image: "mine:latest" }, "N"), /container engine/],
    [sagemaker.send(new DescribeModelCommand({ ModelName: "N" })), /^Could not find model "arn:.*model\/n"/],
    [sagemaker.send(new DeleteModelCommand({ ModelName: "N" })), /^Could not find model/],
    [
      sagemaker.send(new CreateEndpointCommand({ EndpointName: "E", EndpointConfigName: "C" })),
      /^Could not find endpoint configuration "arn:.*endpoint-config\/c"/,
    ],
    [sagemaker.send(new DescribeEndpointCommand({ EndpointName: "E" })), /^Could not find endpoint "/],
  ];
  for (const [call, text] of table) {
    const error = await failure(call);
    assert.equal(error.name, "ValidationException");
    assert.match(error.message, text);
  }
});

test("parameters that would change behaviour or promise protection are rejected by name; the same parameters set to their defaults are accepted", async () => {
  await using platform = await openPlatform(join(root, "members"));
  const { sagemaker } = platform;
  const post = async (operation: string, input: object): Promise<string> => {
    const headers = { "content-type": "application/x-amz-json-1.1", "x-amz-target": `SageMaker.${operation}` };
    const reply = await fetch(platform.url, { method: "POST", headers, body: JSON.stringify(input) });
    const { __type: type = "", message = "" } = (await reply.json()) as { __type?: string; message?: string };
    return reply.status === 200 ? "taken" : `${type}: ${message}`;
  };
  let count = 0;
  const model = (more: object, container: object = {}) =>
    post("CreateModel", {
      ModelName: `m${count++}`,
      ExecutionRoleArn: roleArn,
      PrimaryContainer: { Image: image, ...container },
      ...more,
    });
  const variant = { VariantName: "v", ModelName: "m", InstanceType: "ml.m5.large", InitialInstanceCount: 1 };
  const config = (more: object, ofVariant: object = {}) =>
    post("CreateEndpointConfig", {
      EndpointConfigName: `c${count++}`,
      ProductionVariants: [{ ...variant, ...ofVariant }],
      ...more,
    });
  const endpoint = (DeploymentConfig: object) =>
    post("CreateEndpoint", { EndpointName: "e", EndpointConfigName: "absent", DeploymentConfig });
  const traffic = (more: object) => ({
    BlueGreenUpdatePolicy: { TrafficRoutingConfiguration: { WaitIntervalInSeconds: 0, ...more } },
  });
  const vpc = { SecurityGroupIds: ["sg-1"], Subnets: ["subnet-1"] };
  const capture = {
    InitialSamplingPercentage: 100,
    DestinationS3Uri: "s3://b/c",
    CaptureOptions: [{ CaptureMode: "Input" }],
  };
  const source = { S3Uri: "s3://b/m/", S3DataType: "S3Prefix", CompressionType: "None" };
  for (const [response, name] of [
    [model({ EnableNetworkIsolation: true }), "EnableNetworkIsolation true"],
    [model({ VpcConfig: vpc }), "VpcConfig"],
    [model({}, { ImageConfig: { RepositoryAccessMode: "Vpc" } }), "ImageConfig.RepositoryAccessMode Vpc"],
    [
      model({}, { ModelDataSource: { S3DataSource: { ...source, ETag: "abc" } } }),
      "ModelDataSource.S3DataSource.ETag abc",
    ],
    [config({ KmsKeyId: "alias/mine" }), "KmsKeyId alias/mine"],
    [config({ VpcConfig: vpc }), "VpcConfig"],
    [config({ DataCaptureConfig: { ...capture, KmsKeyId: "k" } }), "KmsKeyId k of DataCaptureConfig"],
    [config({}, { EnableSSMAccess: true }), "EnableSSMAccess true of a variant"],
    [config({}, { CoreDumpConfig: { DestinationS3Uri: "s3://b/c" } }), "CoreDumpConfig of a variant"],
    [
      config({}, { ManagedInstanceScaling: { Status: "ENABLED", MaxInstanceCount: 3 } }),
      "ManagedInstanceScaling of a variant with a ModelName",
    ],
  ] as const)
    assert.equal(await response, `ValidationException: ${name} is not supported by this platform yet.`);
  assert.match(await config({}, { InstanceType: "ml.inf2.xlarge" }), /: ml.inf2.xlarge is not supported .* AWS Neuron/);
  for (const response of [
    model({ EnableNetworkIsolation: false, InferenceExecutionConfig: { Mode: "Serial" } }),
    model(
      {},
      { ImageConfig: { RepositoryAccessMode: "Platform" }, MultiModelConfig: { ModelCacheSetting: "Enabled" } },
    ),
  ])
    assert.equal(await response, "taken");
  await sagemaker.send(
    new CreateModelCommand({ ModelName: "m", ExecutionRoleArn: roleArn, PrimaryContainer: { Image: image } }),
  );
  const harmless = { DataCaptureConfig: { ...capture, EnableCapture: false }, EnableNetworkIsolation: false };
  assert.equal(await config(harmless, { EnableSSMAccess: false }), "taken");
  // Validation succeeds, so the missing endpoint configuration is the first error.
  assert.match(await endpoint(traffic({ Type: "ALL_AT_ONCE" })), /Could not find endpoint configuration/);
});

test("a listing continues after the previous page even when all rows of that page have been deleted", async () => {
  await using platform = await openPlatform(join(root, "listing"));
  const { sagemaker } = platform;
  const names = Array.from({ length: 25 }, (_, index) => `page-${String(index).padStart(2, "0")}`);
  const PrimaryContainer = { Image: image, ModelDataUrl: "s3://models/one.tar.gz" };
  for (const order of [{}, { SortBy: "Name", SortOrder: "Ascending" }] as const) {
    for (const ModelName of names) {
      await sagemaker.send(new CreateModelCommand({ ModelName, ExecutionRoleArn: roleArn, PrimaryContainer }));
    }
    const found: string[] = [];
    for await (const page of paginateListModels({ client: sagemaker }, { NameContains: "page-", ...order })) {
      for (const { ModelName } of page.Models ?? []) {
        found.push(ModelName as string);
        await sagemaker.send(new DeleteModelCommand({ ModelName }));
      }
    }
    assert.deepEqual(found.toSorted(), names);
  }
  await assert.rejects(sagemaker.send(new ListModelsCommand({ NextToken: "bm9uZQ" })), /Invalid NextToken/);
});

test("after a restart of the platform its endpoints return to service", async () => {
  const directory = join(root, "again");
  {
    await using platform = await openPlatform(directory);
    await platform.store.createBucket("models");
    await platform.put("one.tar.gz", { answer: "1" });
    await deploy(platform, "Again", { ModelDataUrl: "s3://models/one.tar.gz" });
  }
  await using platform = await openPlatform(directory);
  const again = () => platform.hosting.endpoints.describe("again", { accountId: "000000000000", region: "us-east-1" });
  assert.equal((await again()).record.state.at, "InService");
  while ((await again()).inServiceCounts.size === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal((await platform.invoke("Again", "x")).text, "1:x");
});
