/** kill -9 of the platform and of each process below it, during uploads, deployments and invocations. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "node:net";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from "@aws-sdk/client-s3";
import { DeleteEndpointCommand, DescribeEndpointCommand, ListEndpointsCommand } from "@aws-sdk/client-sagemaker";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { bucket, createEndpoint, endpointIs, invoke, Platform, prefix, errorOfInvocation } from "./platform.ts";
import { tarball } from "./tarball.ts";
import { pidIn, until } from "./until.ts";

const program = readFileSync(new URL("models/faulty.py", import.meta.url));
const archive = (text: string | Uint8Array = program) =>
  tarball([
    { path: "model/config.pbtxt", body: faultyConfig },
    { path: "model/1/model.py", body: text },
  ]);
const name = "deaths";
const target = "model.tar.gz";

let platform: Platform;
before(async () => {
  platform = await Platform.open();
  await put(prefix + target, archive());
  await createEndpoint(platform, { name });
  await endpointIs(platform, name, "InService");
});
after(async () => {
  await platform[Symbol.asyncDispose]();
});

const put = (key: string, body: Uint8Array) =>
  platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }));
const call = (does: string) => invoke(platform, name, target, faultyRequest(does));
const textOf = async (does: string) => {
  const { outputs } = JSON.parse(await call(does)) as { outputs: { name: string; data: string[] }[] };
  return outputs.find((output) => output.name === "TEXT")?.data[0];
};
const workerPid = async () => Number(await textOf("pid"));
test("kill -9 of a Python worker inside an endpoint fails its running invocation, and the next one succeeds", async () => {
  const pending = errorOfInvocation(call("hold worker"));
  const pid = await pidIn(join(platform.workspace.meeting, "worker.running"));
  process.kill(pid, "SIGKILL");
  const error = await pending;
  assert.equal(error.name, "ModelError");
  assert.equal(error.status, 424);
  assert.match(
    error.message,
    /^Received client error \(400\) from primary with message ".*is not healthy\. \(signal SIGKILL\)/,
  );
  await until("the model responds again", () =>
    call("echo").then(
      () => true,
      () => false,
    ),
  );
  assert.notEqual(await workerPid(), pid);
});

test("kill -9 of an endpoint's server fails its running invocations; it restarts, and the endpoint stays in service", async () => {
  const daemon = Number(await textOf("daemon"));
  const pending = errorOfInvocation(call("hold server"));
  const worker = await pidIn(join(platform.workspace.meeting, "server.running"));
  const [server = 0] = platform.servers();
  process.kill(server, "SIGKILL");
  const error = await pending;
  assert.equal(error.name, "ModelError");
  assert.match(
    error.message,
    /^Received server error \(503\) from primary with message "The container did not respond: /,
  );
  await until("the worker has ended with its server", () => !isAlive(worker));
  await until("the daemon that the model had started has ended", () => !isAlive(daemon));
  assert.match(await call("echo"), /"OUT"/);
  const [again = 0] = platform.servers();
  assert.notEqual(again, server);
  await endpointIs(platform, name, "InService");
});

test("a server that is killed repeatedly restarts each time", async () => {
  for (let round = 0; round < 3; round++) {
    const [server = 0] = await until("a server runs", () =>
      platform.servers().length === 1 ? platform.servers() : null,
    );
    process.kill(server, "SIGKILL");
    await until("the server has ended", () => !isAlive(server));
    await until("the model responds again", () =>
      call("echo").then(
        () => true,
        () => false,
      ),
    );
  }
});

test("kill -9 of an endpoint's server during a cold load repeats the load, and the request succeeds", async () => {
  const started = join(platform.workspace.meeting, "cold");
  const slow = `import os, time
class TritonPythonModel:
  def initialize(self, args):
    os.umask(0) # Its second worker has another user.
    open(${JSON.stringify(started)}, "w").write(str(os.getpid()))
    while not os.path.exists(${JSON.stringify(`${started}.go`)}): time.sleep(0.005)
  def execute(self, requests):
    import triton_python_backend_utils as pb_utils
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(r, "VALUE").as_numpy())]) for r in requests]
`;
  await put(`${prefix}cold.tar.gz`, archive(slow));
  const call = invoke(platform, name, "cold.tar.gz", faultyRequest("echo"));
  call.catch(() => {});
  const first = await pidIn(started);
  process.kill(platform.servers()[0] ?? 0, "SIGKILL");
  await until("it is loaded again", async () => (await pidIn(started)) !== first);
  await writeFile(`${started}.go`, "");
  assert.match(await call, /"OUT"/);
});

test("a load whose object is deleted meanwhile ends, and the next request gets the error of a missing object", async () => {
  const started = join(platform.workspace.meeting, "loading");
  const slow = `import os, time
class TritonPythonModel:
  def initialize(self, args):
    open(${JSON.stringify(started)}, "w").write(str(os.getpid()))
    while not os.path.exists(${JSON.stringify(`${started}.go`)}): time.sleep(0.005)
  def execute(self, requests):
    import triton_python_backend_utils as pb_utils
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(r, "VALUE").as_numpy())]) for r in requests]
`;
  await put(`${prefix}deleted.tar.gz`, archive(slow));
  const first = invoke(platform, name, "deleted.tar.gz", faultyRequest("echo"));
  first.catch(() => {});
  const pid = await pidIn(started);
  await platform.s3.send(new DeleteObjectCommand({ Bucket: bucket, Key: `${prefix}deleted.tar.gz` }));
  const second = await errorOfInvocation(invoke(platform, name, "deleted.tar.gz", faultyRequest("echo")));
  assert.equal(second.name, "ValidationError");
  assert.match(second.message, /^Failed to download model data\(bucket: faults, key: models\/deleted\.tar\.gz\)\./);
  await writeFile(`${started}.go`, "");
  assert.match(await first, /"OUT"/);
  await until("the deleted model's worker has ended", () => !isAlive(pid));
  assert.match(await call("echo"), /"OUT"/);
});

test("kill -9 of the platform in the middle of an upload leaves no partial object, and all acknowledged ones", async () => {
  const kept = Buffer.alloc(3_000_000, 7);
  await put("kept.bin", kept);
  const bytes = 64 * 2 ** 20;
  const signed = new URL(await getSignedUrl(platform.s3, new PutObjectCommand({ Bucket: bucket, Key: "torn.bin" })));
  const socket = connect(Number(signed.port), "127.0.0.1");
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.on("error", () => {});
  socket.write(
    `PUT ${signed.pathname}${signed.search} HTTP/1.1\r\nHost: ${signed.host}\r\nContent-Length: ${bytes}\r\n\r\n`,
  );
  socket.write(Buffer.alloc(bytes / 2, 1));
  const objects = join(platform.workspace.data, "objects");
  await until("half of it is on disk", async () => (await bytesBelow(objects)) > kept.length + bytes / 4);
  await platform.kill();
  await closed;
  await platform.startAgain();
  const missing = await errorOfInvocation(platform.s3.send(new HeadObjectCommand({ Bucket: bucket, Key: "torn.bin" })));
  assert.equal(missing.status, 404);
  const listed = await platform.s3.send(new ListObjectsV2Command({ Bucket: bucket }));
  assert.ok(!listed.Contents?.some(({ Key }) => Key === "torn.bin"));
  const got = await platform.s3.send(new GetObjectCommand({ Bucket: bucket, Key: "kept.bin" }));
  assert.ok(kept.equals((await got.Body?.transformToByteArray()) ?? Buffer.alloc(0)));
  assert.ok((await bytesBelow(objects)) < bytes / 4, "the incomplete upload is deleted");
});

test("after kill -9 of the platform its endpoint is in service again and responds; at another port it has another instance", async () => {
  await endpointIs(platform, name, "InService");
  const before = platform.servers();
  await platform.kill();
  assert.deepEqual(platform.servers(), before);
  await platform.startAgain();
  await endpointIs(platform, name, "InService");
  assert.match(await until("it answers", () => call("echo").catch(() => null)), /"OUT"/);
  assert.notDeepEqual(platform.servers(), before);
  assert.equal(platform.servers().length, 1);
});

test("kill -9 of the platform in the middle of a deployment: the endpoint comes into service after the restart", async () => {
  await createEndpoint(platform, { name: "mid-deploy" });
  await platform.kill();
  await platform.startAgain();
  await endpointIs(platform, "mid-deploy", "InService");
  assert.match(await invoke(platform, "mid-deploy", target, faultyRequest("echo")), /"OUT"/);
  await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: "mid-deploy" }));
  await until("it is deleted", async () => {
    const call = platform.sagemaker.send(new DescribeEndpointCommand({ EndpointName: "mid-deploy" }));
    return await call.then(
      () => false,
      (error: Error) => /Could not find/.test(error.message),
    );
  });
});

test("kill -9 of the platform in the middle of a deletion: the endpoint and its files are deleted after the restart", async () => {
  await createEndpoint(platform, { name: "mid-delete" });
  await endpointIs(platform, "mid-delete", "InService");
  const directories = await readdir(join(platform.workspace.data, "instances"));
  await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: "mid-delete" }));
  await platform.kill();
  await platform.startAgain();
  await until("only the first endpoint exists", async () => {
    const { Endpoints = [] } = await platform.sagemaker.send(new ListEndpointsCommand({}));
    return Endpoints.map(({ EndpointName }) => EndpointName).join() === name;
  });
  await until("it answers", () => call("echo").catch(() => null));
  await until("its files are deleted", async () => {
    return (await readdir(join(platform.workspace.data, "instances"))).length < directories.length;
  });
});

test("an endpoint whose archive is missing at a start says so, and comes back with the archive", async () => {
  const single = "single";
  await put("single.tar.gz", archive());
  await createEndpoint(platform, { name: single, modelDataUrl: `s3://${bucket}/single.tar.gz` });
  await endpointIs(platform, single, "InService");
  await platform.s3.send(new DeleteObjectCommand({ Bucket: bucket, Key: "single.tar.gz" }));
  await platform.stop();
  await platform.startAgain();
  const error = await errorOfInvocation(invoke(platform, single, null, faultyRequest("echo")));
  assert.match(
    error.message,
    /The container is not in service: Failed to download model data for container "container_1" from URL: "s3:\/\/faults\/single\.tar\.gz"/,
  );
  await put("single.tar.gz", archive());
  await until("it answers", () => invoke(platform, single, null, faultyRequest("echo")).catch(() => null));
  await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: single }));
});

test("a second platform over the same data is rejected and does not affect the first", async () => {
  const error = await platform.startSecond().then(
    () => assert.fail("it started"),
    (reason: Error) => reason.message,
  );
  const sentence = `another platform uses ${platform.workspace.data}; stop it, or choose another directory with --data`;
  assert.ok(error.includes(`galatea up: ${sentence}\n`), error);
  assert.match(await call("echo"), /"OUT"/);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}

async function bytesBelow(directory: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    bytes += await stat(join(entry.parentPath, entry.name)).then(
      ({ size }) => size,
      () => 0,
    );
  }
  return bytes;
}
