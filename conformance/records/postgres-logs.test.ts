/** Log lines of platforms that share records in PostgreSQL and objects in an S3 service: kill -9, takeover, SIGTERM. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer, request, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  CloudWatchLogsClient,
  CreateLogGroupCommand,
  CreateLogStreamCommand,
  DeleteLogGroupCommand,
  FilterLogEventsCommand,
  GetLogEventsCommand,
  GetQueryResultsCommand,
  PutLogEventsCommand,
  StartQueryCommand,
} from "@aws-sdk/client-cloudwatch-logs";
import {
  CopyObjectCommand,
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListBucketsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from "@aws-sdk/client-s3";
import { freePorts, startPostgres, type PostgresServer } from "../environments/index.ts";
import { bucket as ownBucket, credentials, errorOfInvocation, Platform } from "../faults/platform.ts";
import { createWorkspace, type Workspace } from "../faults/serving.ts";
import { until } from "../faults/until.ts";
import { Replica } from "./replica-fixture.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));
const [logGroupName, logStreamName] = ["/aws/sagemaker/Endpoints/e", "AllTraffic/i-1"];
const named = { logGroupName, logStreamName };

let server: PostgresServer;
/** Galatea as the S3 service. */
let service: Platform;
let proxy: StoringProxy;
let workspace: Workspace;
let replicas: readonly [Replica, Replica];

/** A proxy of the S3 service. `stored` is called when the service has stored a chunk, before the platform is told. */
interface StoringProxy extends AsyncDisposable {
  readonly url: string;
  stored: (() => Promise<void>) | null;
}

async function openProxy(target: string): Promise<StoringProxy> {
  const proxied: Server = createServer((incoming, outgoing) => {
    const { method, url = "", headers } = incoming;
    const { hostname, port } = new URL(target);
    const call = request({ hostname, port, method, path: url, headers });
    const answer = async (response: IncomingMessage) => {
      if (method === "PUT" && /^\/galatea-logs-[^/]+\/.+/.test(url)) await opened.stored?.();
      outgoing.writeHead(response.statusCode ?? 500, response.headers);
      response.pipe(outgoing);
    };
    call.on("response", (response) => void answer(response));
    call.on("error", () => outgoing.destroy());
    incoming.pipe(call);
  });
  proxied.listen(0, "127.0.0.1");
  await once(proxied, "listening");
  const opened: StoringProxy = {
    url: `http://127.0.0.1:${(proxied.address() as AddressInfo).port}`,
    stored: null,
    async [Symbol.asyncDispose]() {
      proxied.closeAllConnections();
      proxied.close();
      await once(proxied, "close");
    },
  };
  return opened;
}

before(async () => {
  server = await startPostgres("newest");
  await server.createDatabase("records");
  service = await Platform.open(undefined, { verified: true, port: (await freePorts(1))[0] ?? 0 });
  proxy = await openProxy(service.url);
  workspace = await createWorkspace();
  const records = server.url("records");
  const open = (data: string) => Replica.of({ workspace, data, records, objects: proxy.url });
  replicas = [await open("one"), await open("two")];
});
after(async () => {
  for (const replica of replicas) await replica[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
  await rm(workspace.directory, { recursive: true });
  await server[Symbol.asyncDispose]();
});

const logsOf = ({ url }: Replica) =>
  new CloudWatchLogsClient({ endpoint: url, region: "us-east-1", credentials, maxAttempts: 1 });

async function put(replica: Replica, ...messages: readonly string[]): Promise<void> {
  const logEvents = messages.map((message) => ({ timestamp: Date.now(), message }));
  await logsOf(replica).send(new PutLogEventsCommand({ ...named, logEvents }));
}

/** Reads all lines in pages of two. Returns them, and the token after the last one. */
async function read(replica: Replica, nextToken?: string) {
  const messages: string[] = [];
  for (let token = nextToken; ;) {
    const command = new GetLogEventsCommand({ ...named, startFromHead: true, limit: 2, nextToken: token });
    const { events = [], nextForwardToken } = await logsOf(replica).send(command);
    if (events.length === 0) return { messages, token: nextForwardToken };
    messages.push(...events.map(({ message = "" }) => message));
    token = nextForwardToken;
  }
}

async function filtered(replica: Replica, filterPattern: string): Promise<readonly string[]> {
  const { events = [] } = await logsOf(replica).send(new FilterLogEventsCommand({ logGroupName, filterPattern }));
  return events.map(({ message = "" }) => message);
}

/** Counts the lines with a query of Logs Insights. */
async function counted(replica: Replica): Promise<string | undefined> {
  const [startTime, endTime] = [Date.now() / 1000 - 3600, Date.now() / 1000 + 60].map(Math.floor);
  const start = new StartQueryCommand({ logGroupName, startTime, endTime, queryString: "stats count(*) as n" });
  const { queryId } = await logsOf(replica).send(start);
  return await until("the query is complete", async () => {
    const { status, results = [] } = await logsOf(replica).send(new GetQueryResultsCommand({ queryId }));
    return status === "Complete" ? (results[0]?.[0]?.value ?? "none") : null;
  });
}

const leads = (replica: Replica) => until("the replica leads", async () => (await replica.role()) === "leader");

/** Returns the bucket of the chunks in the service, and its keys. */
async function chunks() {
  const { Buckets = [] } = await service.s3.send(new ListBucketsCommand({}));
  const Bucket = Buckets.map(({ Name = "" }) => Name).find((name) => name.startsWith("galatea-logs-"));
  if (Bucket === undefined) return null;
  const { Contents = [] } = await service.s3.send(new ListObjectsV2Command({ Bucket }));
  return { bucket: Bucket, keys: Contents.map(({ Key = "" }) => Key) };
}

const recordedKeys = async () =>
  (await server.query("SELECT key FROM galatea.document WHERE kind = 'log-chunk'", "records")).map(({ key }) => key);

test("after kill -9 between the object of a chunk and its record, the standby has every stored line, and tokens stay valid", async () => {
  const [first, second] = replicas;
  first.start();
  await leads(first);
  second.start();
  await logsOf(first).send(new CreateLogGroupCommand({ logGroupName }));
  await logsOf(first).send(new CreateLogStreamCommand(named));
  await put(first, "one", "two", "three");
  // The platform stores its lines each 50 s.
  const killed = Promise.withResolvers<void>();
  proxy.stored = async () => {
    proxy.stored = null;
    await first.kill();
    killed.resolve();
  };
  const { token } = await read(first);
  await killed.promise;
  await leads(second);
  assert.deepEqual((await read(second)).messages, ["one", "two", "three"]);
  assert.deepEqual((await chunks())?.keys, await recordedKeys());
  await put(second, "four");
  assert.deepEqual((await read(second, token)).messages, ["four"]);
  assert.deepEqual(await filtered(second, "?two ?four"), ["two", "four"]);
  assert.equal(await counted(second), "4");
});

test("SIGTERM of the leader loses no line", async () => {
  const [first, second] = replicas;
  first.start();
  await until("the former leader is a standby", async () => (await first.role()) === "standby");
  await put(second, "five");
  second.signal("SIGTERM");
  assert.equal(await second.ended(), 0, second.log());
  await leads(first);
  const { messages } = await read(first);
  assert.deepEqual(messages, ["one", "two", "three", "four", "five"]);
  assert.deepEqual(await filtered(first, "five"), ["five"]);
});

test("`galatea logs` prints the lines of both leaders", async () => {
  const [leader] = replicas;
  const { accessKeyId, secretAccessKey } = credentials;
  const child = spawn(process.execPath, [main, "logs", "e", `--port=${new URL(leader.url).port}`], {
    env: {
      PATH: process.env["PATH"],
      HOME: workspace.directory,
      GALATEA_ACCESS_KEY_ID: accessKeyId,
      GALATEA_SECRET_ACCESS_KEY: secretAccessKey,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, problems] = await Promise.all([text(child.stdout), text(child.stderr)]);
  for (const word of ["one", "four", "five"]) assert.match(out, new RegExp(`${word}\n`), problems);
});

test("no client of the platform lists, reads, writes, copies or deletes the chunks", async () => {
  const [leader] = replicas;
  const { bucket = "", keys = [] } = (await chunks()) ?? {};
  const [Key = ""] = keys;
  assert.ok(Key !== "");
  const { Buckets = [] } = await leader.s3.send(new ListBucketsCommand({}));
  assert.ok(!Buckets.some(({ Name }) => Name === bucket));
  for (const command of [
    () => leader.s3.send(new ListObjectsV2Command({ Bucket: bucket })),
    () => leader.s3.send(new GetObjectCommand({ Bucket: bucket, Key })),
    () => leader.s3.send(new PutObjectCommand({ Bucket: bucket, Key, Body: "x" })),
    () => leader.s3.send(new DeleteObjectCommand({ Bucket: bucket, Key })),
    () => leader.s3.send(new CopyObjectCommand({ Bucket: ownBucket, Key: "copy", CopySource: `${bucket}/${Key}` })),
  ]) {
    assert.equal((await errorOfInvocation(command())).name, "NoSuchBucket");
  }
  assert.equal(
    (await errorOfInvocation(leader.s3.send(new CreateBucketCommand({ Bucket: bucket })))).name,
    "BucketAlreadyExists",
  );
});

test("while the S3 service is away lines are accepted and groups are deleted; the lines are stored when it is back", async () => {
  const [leader] = replicas;
  const other = { logGroupName: "other", logStreamName };
  await logsOf(leader).send(new CreateLogGroupCommand({ logGroupName: "other" }));
  await service.kill();
  await put(leader, "six");
  await logsOf(leader).send(new CreateLogStreamCommand(other));
  const logEvents = [{ timestamp: Date.now(), message: "local" }];
  await logsOf(leader).send(new PutLogEventsCommand({ ...other, logEvents }));
  const { events = [] } = await logsOf(leader).send(new GetLogEventsCommand({ ...other, startFromHead: true }));
  assert.deepEqual(
    events.map(({ message }) => message),
    ["local"],
  );
  await logsOf(leader).send(new DeleteLogGroupCommand({ logGroupName: "other" }));
  const stored = (await recordedKeys()).length;
  await until("the log says that lines cannot be stored", () => leader.log().includes("log lines cannot be stored"));
  await service.startAgain();
  await until("the lines are stored", () => leader.log().includes("log lines are stored again"));
  assert.equal(leader.log().split("log lines cannot be stored").length, 2);
  assert.ok((await recordedKeys()).length > stored);
  assert.equal((await read(leader)).messages.at(-1), "six");
});

test("a deleted group leaves neither chunks nor records of them", async () => {
  const [leader] = replicas;
  await logsOf(leader).send(new DeleteLogGroupCommand({ logGroupName }));
  await until("the chunks are deleted", async () => (await chunks())?.keys.length === 0);
  await until("the records are deleted", async () => (await recordedKeys()).length === 0);
});
