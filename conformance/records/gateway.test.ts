/** `galatea gateway` in front of two `galatea up --standby`: every API through it, and takeovers behind it. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { after, before, test } from "node:test";
import { CloudWatchClient, ListDashboardsCommand } from "@aws-sdk/client-cloudwatch";
import { IAMClient, ListRolesCommand } from "@aws-sdk/client-iam";
import { GetObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { CreateModelCommand, DescribeModelCommand } from "@aws-sdk/client-sagemaker";
import { InvokeEndpointWithResponseStreamCommand } from "@aws-sdk/client-sagemaker-runtime";
import { freePorts, startPostgres, type PostgresServer } from "../environments/index.ts";
import { faultyConfig } from "../faults/faulty-model.ts";
import { faultyRequest } from "../faults/http-client.ts";
import {
  bucket,
  createEndpoint,
  credentials,
  endpointIs,
  errorOfInvocation,
  image,
  invoke,
  Platform,
  prefix,
} from "../faults/platform.ts";
import { assertNoProcesses, createWorkspace, type Workspace } from "../faults/serving.ts";
import { tarball } from "../faults/tarball.ts";
import { until } from "../faults/until.ts";
import { RunningGateway } from "./gateway-fixture.ts";
import { Replica } from "./replica-fixture.ts";

const program = readFileSync(new URL("../faults/models/faulty.py", import.meta.url));

let server: PostgresServer;
/** Galatea as the S3 service of the objects. */
let service: Platform;
let workspace: Workspace;
let replicas: readonly [Replica, Replica];
let gateway: RunningGateway;

before(async () => {
  server = await startPostgres("newest");
  await server.createDatabase("records");
  service = await Platform.open(undefined, { verified: true, port: (await freePorts(1))[0] ?? 0 });
  const files = { "config.pbtxt": faultyConfig, "1/model.py": program };
  const body = tarball(Object.entries(files).map(([path, text]) => ({ path: `model/${path}`, body: text })));
  await service.s3.send(new PutObjectCommand({ Bucket: bucket, Key: `${prefix}a.tar.gz`, Body: body }));
  workspace = await createWorkspace();
  const open = (data: string) => Replica.of({ workspace, data, records: server.url("records"), objects: service.url });
  replicas = [await open("replica-0"), await open("replica-1")];
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  for (const replica of replicas) await replica[Symbol.asyncDispose]();
  await assertNoProcesses(workspace);
  await rm(workspace.directory, { recursive: true });
  await service[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** Waits until one replica leads and the other one waits. */
async function settled(): Promise<{ readonly leader: Replica; readonly standby: Replica }> {
  const index = await until("one replica leads and the other one is its standby", async () => {
    const roles = await Promise.all(replicas.map((replica) => replica.role()));
    return roles.toSorted().join() === "leader,standby" ? { leader: roles.indexOf("leader") } : null;
  });
  return { leader: replicas[index.leader]!, standby: replicas[1 - index.leader]! };
}

const modelOf = (name: string) =>
  new CreateModelCommand({
    ModelName: name,
    ExecutionRoleArn: "arn:aws:iam::000000000000:role/faults",
    PrimaryContainer: { Image: image, ModelDataUrl: `s3://${bucket}/${prefix}`, Mode: "MultiModel" },
  });

async function textOfObject(name: string): Promise<string | undefined> {
  const { Body } = await gateway.s3.send(new GetObjectCommand({ Bucket: bucket, Key: name }));
  return await Body?.transformToString();
}

const leaderOfGateway = async () =>
  (JSON.parse((await gateway.page("/health")).text) as { readonly leader: string | null }).leader;

test("a gateway that starts before any platform has led is live and not ready, and rejects calls with 503", async () => {
  gateway = await RunningGateway.open({ workspace, records: server.url("records") });
  assert.deepEqual(await gateway.page("/ping"), { status: 503, text: "starting\n" });
  assert.equal(await leaderOfGateway(), null);
  const error = await errorOfInvocation(gateway.sagemaker.send(modelOf("early")));
  assert.deepEqual(
    [error.status, error.name, error.message],
    [503, "ServiceUnavailable", "No platform has the records now. Retry later."],
  );
});

test("when a platform leads, every API works through the gateway as at the leader itself", async () => {
  for (const replica of replicas) replica.start();
  const { leader } = await settled();
  await until("the gateway knows the leader", async () => (await leaderOfGateway()) === leader.url);
  assert.deepEqual(await gateway.page("/ping"), { status: 200, text: "" });
  const client = { endpoint: gateway.url, region: "us-east-1", credentials, maxAttempts: 1 };
  await new IAMClient(client).send(new ListRolesCommand({}));
  await new CloudWatchClient(client).send(new ListDashboardsCommand({}));
  const long = randomBytes(12 << 20);
  await gateway.s3.send(new PutObjectCommand({ Bucket: bucket, Key: "long", Body: long }));
  const { Body } = await gateway.s3.send(new GetObjectCommand({ Bucket: bucket, Key: "long" }));
  assert.ok(long.equals((await Body?.transformToByteArray()) ?? Buffer.alloc(0)));
  await createEndpoint(gateway, { name: "kept", modelDataUrl: `s3://${bucket}/${prefix}a.tar.gz` });
  await endpointIs(gateway, "kept", "InService");
  assert.match(await invoke(gateway, "kept", null, faultyRequest("echo")), /"OUT"/);
  const streamed = await gateway.runtime.send(
    new InvokeEndpointWithResponseStreamCommand({
      EndpointName: "kept",
      ContentType: "application/json",
      Body: faultyRequest("echo"),
    }),
  );
  let text = "";
  for await (const { PayloadPart } of streamed.Body ?? []) text += Buffer.from(PayloadPart?.Bytes ?? []).toString();
  assert.match(text, /"OUT"/);
});

test("a gateway on the leader's machine does not give its callers the access of programs of that machine", async () => {
  const { leader } = await settled();
  assert.equal((await leader.page("/metrics")).status, 200);
  assert.equal((await gateway.page("/metrics")).status, 403);
});

test("kill -9 of the leader: calls through the gateway that were not sent wait for the next leader", async (t) => {
  const { leader, standby } = await settled();
  await gateway.s3.send(new PutObjectCommand({ Bucket: bucket, Key: "before", Body: "before" }));
  await gateway.sagemaker.send(modelOf("before"));
  await leader.kill();
  const sinceMs = performance.now();
  const calls = [
    gateway.sagemaker.send(modelOf("waited")),
    gateway.s3.send(new PutObjectCommand({ Bucket: bucket, Key: "waited", Body: "waited" })),
    gateway.sagemaker.send(new DescribeModelCommand({ ModelName: "before" })),
  ];
  await Promise.all(calls);
  t.diagnostic(`answered by the next leader after ${((performance.now() - sinceMs) / 1000).toFixed(1)} s`);
  assert.equal(await standby.role(), "leader");
  assert.equal(await leaderOfGateway(), standby.url);
  for (const name of ["before", "waited"]) {
    assert.equal(await textOfObject(name), name);
    await gateway.sagemaker.send(new DescribeModelCommand({ ModelName: name }));
  }
  leader.start();
  await settled();
});

test("while the database is down the gateway passes calls to the leader, and follows the records afterwards", async () => {
  await server.kill();
  const { leader } = { leader: await leaderOfGateway() };
  assert.equal(await textOfObject("before"), "before");
  await server.start();
  const url = await until("a platform leads, and the gateway knows it", async () => {
    for (const replica of replicas) {
      if ((await replica.role()) === "none" && replica.log().includes("taken over")) replica.start();
    }
    return await gateway.sagemaker.send(modelOf(`after-${performance.now().toFixed(0)}`)).then(
      () => leaderOfGateway(),
      () => null,
    );
  });
  assert.ok([leader, ...replicas.map((replica) => replica.url)].includes(url));
});

test("a gateway that stops lets a request in flight end", async () => {
  const second = await RunningGateway.open({ workspace, records: server.url("records") });
  await until("it is ready", async () => (await second.page("/ping")).status === 200);
  await until("the leader of the replicas serves", () =>
    second.s3.send(new GetObjectCommand({ Bucket: bucket, Key: "long" })).then(
      async ({ Body, ContentLength }) => {
        const ended = second.end("SIGTERM");
        const bytes = await Body?.transformToByteArray();
        await ended;
        return bytes?.length === ContentLength;
      },
      () => null,
    ),
  );
  await second[Symbol.asyncDispose]();
});
