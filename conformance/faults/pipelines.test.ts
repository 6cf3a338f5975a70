/** Failures in inference pipelines of real containers: kills, updates, restarts, and responses that are too large. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import {
  CreateEndpointCommand,
  CreateEndpointConfigCommand,
  CreateModelCommand,
  DeleteEndpointCommand,
  DescribeEndpointCommand,
  UpdateEndpointCommand,
} from "@aws-sdk/client-sagemaker";
import { InvokeEndpointCommand } from "@aws-sdk/client-sagemaker-runtime";
import { descendantsOf } from "./processes.ts";
import { bucket, endpointIs, image, Platform, errorOfInvocation } from "./platform.ts";
import { tarball } from "./tarball.ts";
import { pidIn, until } from "./until.ts";

const names = ["first", "middle", "last"];
const config = `backend: "python"
max_batch_size: 0
input [ { name: "WORDS" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "WORDS" data_type: TYPE_STRING dims: [ 1 ] } ]
`;
let platform: Platform;

before(async () => {
  platform = await Platform.open();
  const program = await readFile(fileURLToPath(new URL("models/relaying.py", import.meta.url)));
  const Body = tarball([
    { path: "relaying/config.pbtxt", body: config },
    { path: "relaying/1/model.py", body: program },
  ]);
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: "relaying.tar.gz", Body }));
  await create("pipeline", names);
  await create("direct", names, "Direct");
  for (const name of ["pipeline", "direct"]) await endpointIs(platform, name, "InService");
});
after(() => platform[Symbol.asyncDispose]());

async function create(name: string, containers: readonly string[], mode: "Serial" | "Direct" = "Serial") {
  await createConfig(name, containers, mode);
  await platform.sagemaker.send(new CreateEndpointCommand({ EndpointName: name, EndpointConfigName: name }));
}

/** Creates a model and a configuration with one name. */
async function createConfig(
  name: string,
  containers: readonly string[],
  Mode: "Serial" | "Direct" = "Serial",
  key = "relaying.tar.gz",
): Promise<void> {
  const { sagemaker, workspace: place } = platform;
  const definition = (hostname: string) => ({
    ContainerHostname: hostname,
    Image: image,
    ModelDataUrl: `s3://${bucket}/${hostname === "absent" ? "absent.tar.gz" : key}`,
    // The response of the generate extension is a valid request.
    Environment: { NAME: hostname, FAULTS_MEETING: place.meeting, SAGEMAKER_TRITON_INFERENCE_TYPE: "generate" },
  });
  await sagemaker.send(
    new CreateModelCommand({
      ModelName: name,
      ExecutionRoleArn: "arn:aws:iam::000000000000:role/faults",
      Containers: containers.map(definition),
      InferenceExecutionConfig: { Mode },
    }),
  );
  const variant = {
    VariantName: "all",
    ModelName: name,
    InstanceType: "ml.m5.large",
    InitialInstanceCount: 1,
  } as const;
  await sagemaker.send(new CreateEndpointConfigCommand({ EndpointConfigName: name, ProductionVariants: [variant] }));
}

async function call(words: string, endpoint = "pipeline", container?: string): Promise<string> {
  const reply = await platform.runtime.send(
    new InvokeEndpointCommand({
      EndpointName: endpoint,
      ContentType: "application/json",
      Body: JSON.stringify({ WORDS: words }),
      ...(container === undefined ? {} : { TargetContainerHostname: container }),
    }),
  );
  return (JSON.parse(reply.Body.transformToString()) as { WORDS: string }).WORDS;
}

/** Returns the server processes of an endpoint's containers, found by their command lines. */
function serversOf(endpoint: string, container = "[a-z]+"): number[] {
  const title = new RegExp(`--id=${endpoint}/all/i-[0-9a-f]+/${container} `);
  const servers = new Set(platform.servers());
  const found = descendantsOf(platform.pid).filter(({ pid, command }) => servers.has(pid) && title.test(command));
  return found.map(({ pid }) => pid);
}

function serverOf(endpoint: string, container: string): number {
  const [pid, ...more] = serversOf(endpoint, container);
  assert.ok(pid !== undefined && more.length === 0, `${endpoint} ${container}`);
  return pid;
}

test("words pass through every container, and in Direct mode through the one that is named", async () => {
  assert.equal(await call("hello"), "hello first middle last");
  for (const name of names) assert.equal(await call("hello", "direct", name), `hello ${name}`);
});

test("the container whose model fails is named with its own status and error text", async () => {
  for (const name of names) {
    const { name: code, status, message } = await errorOfInvocation(call(`${name}:fails`));
    assert.deepEqual([code, status], ["ModelError", 424]);
    assert.match(
      message,
      new RegExp(`^Received (client|server) error \\(\\d+\\) from ${name} with message ".*${name} fails on`, "s"),
    );
  }
  assert.equal(await call("hello"), "hello first middle last");
});

test("responses ten thousand times larger pass within the limit, and over it are rejected with the name of the container", async () => {
  const grown = await call("first:grows");
  assert.equal(grown, `${"first:grows first".repeat(10_000)} middle last`);
  const { status, message } = await errorOfInvocation(call("middle:explodes"));
  assert.equal(status, 413);
  assert.equal(message, "HTTP content length exceeded 6291456 bytes. They are the response of container middle.");
  assert.equal(await call("hello"), "hello first middle last");
});

test("kill -9 of the middle container under load fails its running requests with its name, and all others succeed", async () => {
  const clients = 8;
  let killedAt = Infinity;
  let restoredCount = 0;
  const failures: string[] = [];
  const client = async (number: number) => {
    // Each client sends requests until the restarted container has responded to some of them.
    for (let count = 0, afterwards = 0; afterwards < 5; count++) {
      const sentMs = performance.now();
      try {
        assert.equal(await call(`${number}.${count}`), `${number}.${count} first middle last`);
        if (sentMs > killedAt) afterwards += 1;
        if (afterwards === 5) restoredCount += 1;
      } catch (error) {
        failures.push((error as Error).message);
        assert(failures.length <= clients, failures.join("\n"));
      }
    }
  };
  const pending = Array.from({ length: clients }, (_, number) => client(number));
  const before = serverOf("pipeline", "middle");
  const others = ["first", "last"].map((name) => serverOf("pipeline", name));
  await call("before the kill");
  killedAt = performance.now();
  process.kill(before, "SIGKILL");
  await Promise.all(pending);
  assert.equal(restoredCount, clients);
  for (const message of failures) assert.match(message, /^Received server error \(503\) from middle with message /);
  assert.notEqual(serverOf("pipeline", "middle"), before);
  assert.deepEqual(
    ["first", "last"].map((name) => serverOf("pipeline", name)),
    others,
  );
});

test("a container that restarts does not affect other containers of a Direct endpoint", async () => {
  const before = platform.log().length;
  process.kill(serverOf("direct", "middle"), "SIGKILL");
  assert.equal(await call("hello", "direct", "first"), "hello first");
  // Until the platform has noticed the failure, a request may fail too.
  await until("the end is noticed", () =>
    /a container ended and is restarted.*container=middle/.test(platform.log().slice(before)),
  );
  assert.equal(await call("hello", "direct", "middle"), "hello middle");
});

test("a model that ends its worker fails the request with its container's name", async () => {
  const { message } = await errorOfInvocation(call("last:dies"));
  assert.match(
    message,
    /^Received client error \(400\) from last with message "\{"error":"Stub process 'relaying_0' is not healthy/,
  );
  assert.equal(await call("hello"), "hello first middle last");
});

test("an update to another pipeline during calls loses none, and the old containers end", async () => {
  const old = serversOf("pipeline");
  const pending = call("middle:waits");
  await pidIn(join(platform.workspace.meeting, "middle.running"));
  await createConfig("shorter", ["first", "last"]);
  const updated = new AbortController();
  const responses = new Set<string>();
  const requests = (async () => {
    while (!updated.signal.aborted) responses.add(await call("hello", "pipeline"));
  })();
  await platform.sagemaker.send(new UpdateEndpointCommand({ EndpointName: "pipeline", EndpointConfigName: "shorter" }));
  // One request waits in the middle container, and others are queued after it until the endpoint is updated.
  await endpointIs(platform, "pipeline", "InService");
  assert.equal(await call("hello"), "hello first last");
  await writeFile(join(platform.workspace.meeting, "middle.go"), "");
  assert.equal(await pending, "middle:waits first middle last");
  updated.abort();
  await requests;
  for (const response of responses) assert.match(response, /^hello first (middle )?last$/);
  await until("the old containers have ended", () => !serversOf("pipeline").some((pid) => old.includes(pid)));
  assert.equal(serversOf("pipeline").length, 2);
});

test("an update to a pipeline with a missing model is rolled back, and names the container", async () => {
  await createConfig("broken", ["first", "absent"]);
  await platform.sagemaker.send(new UpdateEndpointCommand({ EndpointName: "pipeline", EndpointConfigName: "broken" }));
  const reason = await endpointIs(platform, "pipeline", "InService");
  assert.match(
    reason,
    /^Failed to download model data for container "absent" from URL: "s3:\/\/faults\/absent\.tar\.gz"/,
  );
  assert.equal(await call("hello"), "hello first last");
});

test("after kill -9 of the platform every container of both endpoints is restored, in its order and its mode", async () => {
  await platform.kill();
  await platform.startAgain();
  await endpointIs(platform, "pipeline", "InService");
  assert.equal(await call("hello"), "hello first last");
  assert.equal(await call("hello", "direct", "last"), "hello last");
  assert.match(
    (await errorOfInvocation(call("hello", "direct"))).message,
    /requires a target container hostname header/,
  );
});

test("a deleted pipeline leaves no container", async () => {
  await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: "pipeline" }));
  await until("the endpoint is deleted", async () => {
    const pending = platform.sagemaker.send(new DescribeEndpointCommand({ EndpointName: "pipeline" }));
    return (await pending.catch(() => null)) === null;
  });
  assert.equal(platform.servers().length, names.length);
});
