/** Two `galatea up --standby` over the same records and objects: one leads, and the other takes over when the first one ends, hangs or is cut off. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { after, before, test, type TestContext } from "node:test";
import { CloudWatchClient, ListDashboardsCommand } from "@aws-sdk/client-cloudwatch";
import { GetObjectCommand, ListBucketsCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { CreateModelCommand, DescribeModelCommand, ListModelsCommand } from "@aws-sdk/client-sagemaker";
import { IAMClient, ListRolesCommand } from "@aws-sdk/client-iam";
import { FaultyNetwork } from "../../packages/hosting/test/faulty-network-fixture.ts";
import { freePorts, startPostgres, type PostgresServer } from "../environments/index.ts";
import { faultyRequest } from "../faults/http-client.ts";
import { faultyConfig } from "../faults/faulty-model.ts";
import {
  bucket,
  createEndpoint,
  credentials,
  endpointIs,
  image,
  invoke,
  Platform,
  prefix,
  errorOfInvocation,
} from "../faults/platform.ts";
import { assertNoProcesses, createWorkspace, type Workspace } from "../faults/serving.ts";
import { tarball } from "../faults/tarball.ts";
import { until } from "../faults/until.ts";
import { Replica } from "./replica-fixture.ts";

const program = readFileSync(new URL("../faults/models/faulty.py", import.meta.url));

let server: PostgresServer;
/** Galatea as the S3 service of the objects. */
let service: Platform;
let place: Workspace;
/** The network between each replica and the database. */
let networks: readonly FaultyNetwork[];
let replicas: readonly Replica[];

before(async () => {
  server = await startPostgres("newest");
  await server.createDatabase("records");
  service = await Platform.open(undefined, { verified: true, port: (await freePorts(1))[0] ?? 0 });
  const files = { "config.pbtxt": faultyConfig, "1/model.py": program };
  const body = tarball(Object.entries(files).map(([path, text]) => ({ path: `model/${path}`, body: text })));
  await service.s3.send(new PutObjectCommand({ Bucket: bucket, Key: `${prefix}a.tar.gz`, Body: body }));
  place = await createWorkspace();
  networks = [await FaultyNetwork.open(server.port), await FaultyNetwork.open(server.port)];
  replicas = await Promise.all(
    networks.map(({ port }, index) =>
      Replica.of({
        workspace: place,
        data: `replica-${index}`,
        records: `postgres://galatea@127.0.0.1:${port}/records?sslmode=disable`,
        objects: service.url,
      }),
    ),
  );
});
after(async () => {
  for (const replica of replicas) await replica[Symbol.asyncDispose]();
  for (const network of networks) await network[Symbol.asyncDispose]();
  await assertNoProcesses(place);
  await rm(place.directory, { recursive: true });
  await service[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const rolesOf = () => Promise.all(replicas.map((replica) => replica.role()));

/** Waits until one replica leads and the other one waits. */
async function settled(): Promise<{ readonly leader: Replica; readonly standby: Replica }> {
  const index = await until("one replica leads and the other one is its standby", async () => {
    const roles = await rolesOf();
    return roles.toSorted().join() === "leader,standby" ? { leader: roles.indexOf("leader") } : null;
  });
  return { leader: replicas[index.leader]!, standby: replicas[1 - index.leader]! };
}

const leads = (replica: Replica) => until("the replica leads", async () => (await replica.role()) === "leader");

const networkOf = (replica: Replica) => networks[replicas.indexOf(replica)]!;

const modelOf = (name: string) =>
  new CreateModelCommand({
    ModelName: name,
    ExecutionRoleArn: "arn:aws:iam::000000000000:role/faults",
    PrimaryContainer: { Image: image, ModelDataUrl: `s3://${bucket}/${prefix}`, Mode: "MultiModel" },
  });

/** Creates models and puts objects at a replica, each until the first failure, or until `stop`. */
function writing(replica: Replica, name: string) {
  const stopping = new AbortController();
  const acknowledged = { models: [] as string[], objects: [] as string[] };
  const write = async (kind: keyof typeof acknowledged, send: (each: string) => Promise<unknown>) => {
    for (let count = 0; !stopping.signal.aborted; count += 1) {
      const each = `${name}-${kind}-${count}`;
      try {
        await send(each);
      } catch {
        return;
      }
      acknowledged[kind].push(each);
    }
  };
  const ended = Promise.all([
    write("models", (each) => replica.sagemaker.send(modelOf(each))),
    write("objects", (each) => replica.s3.send(new PutObjectCommand({ Bucket: bucket, Key: each, Body: each }))),
  ]);
  /** Resolves when no write is in flight. */
  const stop = async () => {
    stopping.abort();
    await ended;
  };
  return { acknowledged, stop };
}

async function assertHas(
  replica: Replica,
  { models, objects }: { models: readonly string[]; objects: readonly string[] },
) {
  for (const name of models) await replica.sagemaker.send(new DescribeModelCommand({ ModelName: name }));
  for (const name of objects) {
    const { Body } = await replica.s3.send(new GetObjectCommand({ Bucket: bucket, Key: name }));
    assert.equal(await Body?.transformToString(), name);
  }
}

const seconds = (sinceMs: number) => `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;

/** Reports the time until the replica leads and until it acknowledges a write. */
async function takenOver(t: TestContext, replica: Replica, name: string): Promise<void> {
  const sinceMs = performance.now();
  await leads(replica);
  const leading = seconds(sinceMs);
  await replica.sagemaker.send(modelOf(name));
  t.diagnostic(`leads after ${leading}, has acknowledged a write after ${seconds(sinceMs)}`);
}

test("of two replicas that start at once one becomes the leader; the other one is live, not ready, and rejects every call with 503", async () => {
  for (const replica of replicas) replica.start();
  const { leader, standby } = await settled();
  assert.equal((await leader.page("/ping")).status, 200);
  assert.deepEqual(await standby.page("/ping"), { status: 503, text: "standby\n" });
  const health = await until("the standby knows the leader", async () => {
    const { text } = await standby.page("/health");
    return text.includes("127") ? text : null;
  });
  assert.deepEqual(JSON.parse(health), { status: "standby", leader: "127.0.0.1" });
  const client = { endpoint: standby.url, region: "us-east-1", credentials, maxAttempts: 1 };
  const calls = [
    () => standby.sagemaker.send(new ListModelsCommand({})),
    () => invoke(standby, "kept", "a.tar.gz", faultyRequest("echo")),
    () => standby.s3.send(new ListBucketsCommand({})),
    () => standby.s3.send(new PutObjectCommand({ Bucket: bucket, Key: "never", Body: "x".repeat(1 << 20) })),
    () => new IAMClient(client).send(new ListRolesCommand({})),
    () => new CloudWatchClient(client).send(new ListDashboardsCommand({})),
  ];
  for (const each of calls) {
    const error = await errorOfInvocation(each());
    assert.deepEqual([error.status, error.name], [503, "ServiceUnavailable"]);
    assert.match(error.message, /This platform is a standby: another platform at 127\.0\.0\.1 has the records/);
  }
});

test("kill -9 of the leader under writes: the standby takes over with every acknowledged write, and starts the instances again", async (t) => {
  const { leader, standby } = await settled();
  await createEndpoint(leader, { name: "kept" });
  await endpointIs(leader, "kept", "InService");
  assert.match(await invoke(leader, "kept", "a.tar.gz", faultyRequest("echo")), /"OUT"/);
  const former = leader.servers();
  assert.ok(former.length > 0);
  const { acknowledged, stop } = writing(leader, "killed");
  await until("writes are acknowledged", () => acknowledged.models.length > 20 && acknowledged.objects.length > 20);
  await leader.kill();
  await takenOver(t, standby, "after-kill");
  await stop();
  t.diagnostic(`${acknowledged.models.length} models and ${acknowledged.objects.length} objects were acknowledged`);
  await assertHas(standby, acknowledged);
  await endpointIs(standby, "kept", "InService");
  assert.match(await invoke(standby, "kept", "a.tar.gz", faultyRequest("echo")), /"OUT"/);
  // They are over the data directory of the former leader: without pings they end after --instance-grace-secs.
  await until("the instances of the former leader have ended", () => leader.servers().length === 0);
  assert.ok(standby.servers().length > 0);
  leader.start();
  await settled();
});

test("a leader that hangs (SIGSTOP) loses the records; when it continues, it writes nothing and ends with a message", async (t) => {
  const { leader, standby } = await settled();
  const { acknowledged, stop } = writing(leader, "hung");
  await until("writes are acknowledged", () => acknowledged.models.length > 20);
  leader.signal("SIGSTOP");
  const late = errorOfInvocation(leader.sagemaker.send(modelOf("late")));
  await takenOver(t, standby, "after-stop");
  leader.signal("SIGCONT");
  assert.equal(await leader.ended(), 1);
  assert.match(
    leader.log(),
    /another platform has taken over the records in postgres:\/\/galatea@127\.0\.0\.1:\d+\/records: this one can write nothing any more and has to stop/,
  );
  await stop();
  await late;
  await assertHas(standby, acknowledged);
  assert.match(
    (await errorOfInvocation(standby.sagemaker.send(new DescribeModelCommand({ ModelName: "late" })))).message,
    /late/,
  );
  leader.start();
  await settled();
});

test("a leader whose connection breaks continues; one that is cut off from the database for longer loses the records", async (t) => {
  const { leader, standby } = await settled();
  for (let round = 0; round < 5; round += 1) {
    networkOf(leader).cut();
    await until("a write is acknowledged", () =>
      leader.sagemaker.send(modelOf(`broken-${round}`)).then(
        () => true,
        () => false,
      ),
    );
    assert.deepEqual([await leader.role(), await standby.role()], ["leader", "standby"]);
  }
  networkOf(leader).isSilent = true;
  await takenOver(t, standby, "after-silence");
  networkOf(leader).isSilent = false;
  assert.equal(await leader.ended(), 1);
  leader.start();
  await settled();
});

test("after each restart of the database exactly one replica leads, with all that was acknowledged", async () => {
  for (let round = 0; round < 3; round += 1) {
    const { leader } = await settled();
    const { acknowledged, stop } = writing(leader, `restarted-${round}`);
    await until("writes are acknowledged", () => acknowledged.models.length > 5);
    await server.kill();
    await server.start();
    await stop();
    const now = await settledAgain();
    await assertHas(now, acknowledged);
  }
});

/** Starts replicas that have ended, as a service manager does, until one leads that acknowledges writes. */
async function settledAgain(): Promise<Replica> {
  let count = 0;
  return await until("a replica leads again and writes", async () => {
    for (const replica of replicas)
      if ((await replica.role()) === "none" && replica.log().includes("taken over")) replica.start();
    const { leader } = await settled();
    const name = `again-${performance.now().toFixed(0)}-${(count += 1)}`;
    return await leader.sagemaker.send(modelOf(name)).then(
      () => leader,
      () => null,
    );
  });
}

test("a standby needs a data directory of its own", async () => {
  const { leader } = await settled();
  await using second = await Replica.of(leader.options);
  second.start();
  assert.equal(await second.ended(), 1);
  assert.match(
    second.log(),
    /galatea up: another platform uses .*replica-\d; stop it, or choose another directory with --data/,
  );
});
