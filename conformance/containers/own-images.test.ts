import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import {
  CreateEndpointCommand,
  CreateEndpointConfigCommand,
  CreateModelCommand,
  DeleteEndpointCommand,
  DescribeEndpointCommand,
  type ContainerDefinition,
} from "@aws-sdk/client-sagemaker";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { InvokeEndpointCommand } from "@aws-sdk/client-sagemaker-runtime";
import { freePorts } from "../environments/index.ts";
import { bucket, endpointIs, image as tritonImage, Platform, errorOfInvocation } from "../faults/platform.ts";
import { tarball } from "../faults/tarball.ts";
import { until } from "../faults/until.ts";
import { startDocker } from "./docker-engine.ts";
import { registryAuth, startRegistry } from "./private-registry.ts";

const engine = await startDocker();
const image = await engine.build("probe");
after(() => engine[Symbol.asyncDispose]());

const main = join(import.meta.dirname, "../../packages/galatea/src/main.ts");
const flags = [`--container-engine=${engine.address}`];
const openPlatform = (port = 0) => Platform.open(async () => {}, { flags, port });
const runningContainers = async () => (await engine.docker("ps", "--quiet")).split("\n").filter((id) => id !== "");

/** CreateModel, CreateEndpointConfig, CreateEndpoint, with one small instance. */
async function create(platform: Platform, name: string, ...containers: readonly ContainerDefinition[]): Promise<void> {
  const { sagemaker } = platform;
  const [only] = containers;
  const model = containers.length === 1 ? { PrimaryContainer: only } : { Containers: [...containers] };
  const role = "arn:aws:iam::000000000000:role/own";
  await sagemaker.send(new CreateModelCommand({ ModelName: name, ExecutionRoleArn: role, ...model }));
  const size = { InstanceType: "ml.m5.large", InitialInstanceCount: 1 } as const;
  const variant = { VariantName: "all", ModelName: name, ...size };
  await sagemaker.send(new CreateEndpointConfigCommand({ EndpointConfigName: name, ProductionVariants: [variant] }));
  await sagemaker.send(new CreateEndpointCommand({ EndpointName: name, EndpointConfigName: name }));
}

async function put(platform: Platform, key: string, files: Readonly<Record<string, string>>): Promise<string> {
  const Body = tarball(Object.entries(files).map(([path, body]) => ({ path, body })));
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body }));
  return `s3://${bucket}/${key}`;
}

/** Calls a function of the probe. */
async function probe(
  { runtime }: Platform,
  { endpoint, target }: { readonly endpoint: string; readonly target?: string },
  ...call: readonly unknown[]
): Promise<unknown> {
  const { Body } = await runtime.send(
    new InvokeEndpointCommand({
      EndpointName: endpoint,
      ContentType: "application/json",
      Body: JSON.stringify(call),
      ...(target === undefined ? {} : { TargetModel: target }),
    }),
  );
  return JSON.parse(Body.transformToString());
}

async function remove(platform: Platform, name: string): Promise<void> {
  await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: name }));
  const isGone = async () =>
    (await errorOfInvocation(platform.sagemaker.send(new DescribeEndpointCommand({ EndpointName: name })))) !== null;
  await until(`endpoint ${name} is deleted`, () => isGone().catch(() => false));
}

async function failureOf(platform: Platform, name: string): Promise<string> {
  return await until(`endpoint ${name} has failed`, async () => {
    const reported = await platform.sagemaker.send(new DescribeEndpointCommand({ EndpointName: name }));
    return reported.EndpointStatus === "Failed" ? reported.FailureReason : null;
  });
}

test("a container has SageMaker's variables and files, limits, few capabilities, and reaches no other container and no metadata service", async () => {
  await using platform = await openPlatform();
  const ModelDataUrl = await put(platform, "one.tar.gz", { text: "weights" });
  const Environment = { GALATEA_MODEL_MEMORY_BYTES: String(2 ** 28), LD_LIBRARY_PATH: "/opt/lib", MINE: "a=b c" };
  await create(platform, "one", { Image: image, ModelDataUrl, Environment });
  await create(platform, "other", { Image: image });
  await endpointIs(platform, "one", "InService");
  await endpointIs(platform, "other", "InService");
  const one = { endpoint: "one" };

  const environment = (await probe(platform, one, "environment")) as Record<string, string>;
  assert.equal(environment["MINE"], "a=b c");
  assert.equal(environment["LD_LIBRARY_PATH"], "/opt/lib");
  assert.equal(environment["SAGEMAKER_BIND_TO_PORT"], "8080");
  assert.equal(environment["AWS_REGION"], "us-east-1");
  assert.equal(environment["SAGEMAKER_MULTI_MODEL"], undefined);
  assert.equal(await probe(platform, one, "read", "/opt/ml/model/text"), "weights");
  assert.equal(await probe(platform, one, "write", "/opt/ml/model/text"), "Read-only file system");
  assert.equal(await probe(platform, one, "write", "/tmp/file"), "written");

  const status = (await probe(platform, one, "status")) as Record<string, string>;
  assert.equal(status["NoNewPrivs"], "1");
  assert.equal(status["Seccomp"], "2");
  // CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID, NET_BIND_SERVICE.
  assert.equal(parseInt(status["CapBnd"] ?? "", 16), 0b100_1110_1011);
  const [id = ""] = (await engine.docker("ps", "--quiet", "--filter", "label=galatea.title")).split("\n");
  const { HostConfig } = (JSON.parse(await engine.docker("inspect", id)) as [Inspection])[0];
  assert.equal(HostConfig.PidsLimit, 8192);
  assert.equal(HostConfig.NanoCpus, 2e9);

  const addresses = await Promise.all(
    ["one", "other"].map(async (endpoint) => String(await probe(platform, { endpoint }, "address"))),
  );
  assert.notEqual(addresses[0], addresses[1]);
  for (const host of [addresses[1], "169.254.169.254", "192.0.2.1"]) {
    assert.equal(await probe(platform, one, "connect", host, host === addresses[1] ? 8080 : 80), "timed out", host);
  }
  await remove(platform, "one");
  await remove(platform, "other");
  assert.deepEqual(await runningContainers(), []);
});

test("a pipeline has a built-in container and then one of a user's image", async () => {
  await using platform = await openPlatform();
  const program = await readFile(join(import.meta.dirname, "../faults/models/relaying.py"), "utf8");
  const config = `backend: "python"
max_batch_size: 0
input [ { name: "WORDS" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "WORDS" data_type: TYPE_STRING dims: [ 1 ] } ]
`;
  const files = { "relaying/config.pbtxt": config, "relaying/1/model.py": program };
  const Environment = {
    NAME: "ours",
    FAULTS_MEETING: platform.workspace.meeting,
    SAGEMAKER_TRITON_INFERENCE_TYPE: "generate",
  };
  const ours = { Image: tritonImage, ModelDataUrl: await put(platform, "relaying.tar.gz", files), Environment };
  await create(platform, "mixed", ours, { Image: image });
  await endpointIs(platform, "mixed", "InService");
  const Body = JSON.stringify({ WORDS: "hello" });
  const reply = await platform.runtime.send(
    new InvokeEndpointCommand({ EndpointName: "mixed", ContentType: "application/json", Body }),
  );
  const { received } = JSON.parse(reply.Body.transformToString()) as { received: { WORDS: string } };
  assert.match(received.WORDS, /^hello.*ours/);
  await remove(platform, "mixed");
  assert.deepEqual(await runningContainers(), []);
});

test("galatea image load puts an archive of docker save into the engine's store; a file that is not an archive is an error", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-image-"));
  try {
    const archive = join(folder, "probe.tar");
    await engine.docker("tag", image, "loaded:7");
    await engine.docker("save", "--output", archive, "loaded:7");
    await engine.docker("rmi", "loaded:7");
    const load = (path: string) => promisify(execFile)(process.execPath, [main, "image", "load", path, ...flags]);
    assert.equal((await load(archive)).stdout, "Loaded image: loaded:7\n");
    assert.match(await engine.docker("images", "--quiet", "loaded:7"), /^[0-9a-f]+$/);
    await writeFile(archive, "no archive");
    await assert.rejects(load(archive), { code: 1, stderr: /^galatea image: .+/ });
    await assert.rejects(load(join(folder, "absent.tar")), { code: 1, stderr: /^galatea image: ENOENT/ });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("containers respond while the engine is down; after its restart, a container that it ended is started again", async () => {
  await using platform = await openPlatform();
  await create(platform, "away", { Image: image });
  await endpointIs(platform, "away", "InService");
  const say = () => probe(platform, { endpoint: "away" }, "say", "x");
  const containers = await runningContainers();
  await engine.kill();
  assert.equal(await say(), "x");
  await engine.start();
  // Without `live-restore`, Docker ends the containers of an engine that was killed.
  await until("another container runs", async () => {
    const now = await runningContainers();
    return now.length === 1 && now[0] !== containers[0];
  });
  await until("the container responds again", async () => (await say().catch(() => null)) === "x");
  assert.equal(platform.log().match(/the end of a container cannot be awaited/g)?.length, 1);
});

test("galatea up does not start where no engine responds", async () => {
  const absent = { flags: ["--container-engine=unix:///nowhere/docker.sock"] };
  await assert.rejects(
    Platform.open(async () => {}, absent),
    /galatea up: the container engine at unix:\/\/\/nowhere\/docker\.sock does not respond: connect ENOENT/,
  );
});

test("galatea up does not start with an engine that has no iptables rules, unless a network is named", async () => {
  await using open = await startDocker("base", ["--iptables=false"]);
  const engineFlag = `--container-engine=${open.address}`;
  await assert.rejects(
    Platform.open(async () => {}, { flags: [engineFlag] }),
    /galatea up: the container engine at unix:.+ does not isolate containers from each other, because of dockerd's flag --iptables=false: remove this setting/,
  );
  await using _named = await Platform.open(async () => {}, { flags: [engineFlag, "--container-network=own"] });
});

interface Inspection {
  readonly HostConfig: { readonly PidsLimit: number; readonly NanoCpus: number };
}

test("many models of one container are loaded on demand, and unloaded when their archive is replaced", async () => {
  await using platform = await openPlatform();
  await put(platform, "many/a.tar.gz", { text: "first" });
  await put(platform, "many/b.tar.gz", { text: "second" });
  const ModelDataUrl = `s3://${bucket}/many/`;
  await create(platform, "many", { Image: image, ModelDataUrl, Mode: "MultiModel" });
  await endpointIs(platform, "many", "InService");
  const request = (target: string) => probe(platform, { endpoint: "many", target }, "say", target);
  assert.deepEqual(await request("a.tar.gz"), ["first", "a.tar.gz"]);
  assert.deepEqual(await request("b.tar.gz"), ["second", "b.tar.gz"]);
  const read = ["read", "/proc/1/environ"] as const;
  const [, environment] = (await probe(platform, { endpoint: "many", target: "a.tar.gz" }, ...read)) as [
    string,
    string,
  ];
  assert.ok(environment.split("\0").includes("SAGEMAKER_MULTI_MODEL=true"), environment);
  const absent = await errorOfInvocation(request("c.tar.gz"));
  assert.equal(absent.name, "ValidationError");
  await put(platform, "many/a.tar.gz", { text: "third" });
  await until("the new archive is used", async () => ((await request("a.tar.gz")) as string[])[0] === "third");
  await remove(platform, "many");
});

test("the FailureReason of an endpoint has the engine's error: no image, no program, an exit code with last lines, no memory", async () => {
  await using platform = await openPlatform();
  const start = { GALATEA_MODEL_MEMORY_BYTES: String(2 ** 27) };
  const failing: Readonly<Record<string, ContainerDefinition>> = {
    absent: { Image: "registry.invalid/absent:1" },
    program: { Image: "galatea-tests-base:1" },
    exit: { Image: image, Environment: { AT_START: JSON.stringify(["end", 7, "the weights do not fit"]) } },
    memory: { Image: image, Environment: { ...start, AT_START: JSON.stringify(["fill", 500]) } },
  };
  for (const [name, container] of Object.entries(failing)) await create(platform, name, container);
  assert.match(
    await failureOf(platform, "absent"),
    /^Production variant all could not be started: The image registry\.invalid\/absent:1 is not in the store of the container engine at unix:.+, and pulling it failed: .+registry\.invalid.+ Load it with `galatea image load FILE`/,
  );
  assert.match(
    await failureOf(platform, "program"),
    /^Production variant all could not be started: The container engine could not start the image galatea-tests-base:1: .*"serve": executable file not found/,
  );
  assert.match(
    await failureOf(platform, "exit"),
    /^The primary container for production variant all did not pass the ping health check\..*\(the container exited with code 7; last lines:\nthe weights do not fit\)$/s,
  );
  assert.match(
    await failureOf(platform, "memory"),
    /\(the container was ended by SIGKILL: the kernel killed it for lack of memory\)$/,
  );
  assert.equal(await engine.docker("ps", "--all", "--quiet"), "");
  for (const name of Object.keys(failing)) await remove(platform, name);
});

test("a container that ends is started again, and its endpoint responds", async () => {
  await using platform = await openPlatform();
  await create(platform, "again", { Image: image });
  await endpointIs(platform, "again", "InService");
  const [before] = await runningContainers();
  assert.equal(
    (await errorOfInvocation(probe(platform, { endpoint: "again" }, "end", 1, "requested to end"))).status,
    424,
  );
  await until(
    "the container responds again",
    async () => (await probe(platform, { endpoint: "again" }, "say", "x")) === "x",
  );
  assert.notDeepEqual(await runningContainers(), [before]);
});

test("a platform that was killed adopts its containers with their loaded models; a platform that is stopped removes them", async () => {
  // At another port the containers have another AWS_ENDPOINT_URL, and are started again.
  const [port] = await freePorts(1);
  await using platform = await openPlatform(port);
  await create(platform, "kept", { Image: image });
  await create(platform, "lost", { Image: image });
  for (const name of ["kept", "lost"]) await endpointIs(platform, name, "InService");
  const containers = await runningContainers();
  assert.equal(containers.length, 2);
  await probe(platform, { endpoint: "kept" }, "write", "/tmp/state");
  await platform.kill();
  assert.deepEqual(await runningContainers(), containers);
  const [lost = ""] = (await engine.docker("ps", "--quiet", "--filter", "label=galatea.title")).split("\n");
  await engine.docker("rm", "--force", lost);
  await platform.startAgain();
  for (const endpoint of ["kept", "lost"]) {
    await endpointIs(platform, endpoint, "InService");
    assert.equal(await probe(platform, { endpoint }, "say", "x"), "x");
  }
  assert.deepEqual(
    (await runningContainers()).filter((id) => containers.includes(id)),
    containers.filter((id) => id !== lost),
  );
  await platform.stop();
  assert.equal(await engine.docker("ps", "--all", "--quiet"), "");
  assert.equal(await engine.docker("network", "ls", "--quiet", "--filter", "name=galatea-"), "");
});

test("an image is pulled from a registry with the user and password that docker login wrote, and not without them", async () => {
  const home = await mkdtemp(join(tmpdir(), "galatea-home-"));
  await using cleanUp = new AsyncDisposableStack();
  cleanUp.defer(() => rm(home, { recursive: true }));
  await using registry = await startRegistry();
  const name = `${registry.host}/team/probe:3`;
  const config = join(home, ".docker");
  await mkdir(config);
  await writeFile(join(config, "config.json"), JSON.stringify({ auths: { [registry.host]: { auth: registryAuth } } }));
  await engine.docker("tag", image, name);
  await engine.docker("--config", config, "push", name);
  await engine.docker("rmi", name);

  await using without = await Platform.open(async () => {}, { flags, env: { HOME: join(home, "none") } });
  await create(without, "refused", { Image: name });
  assert.match(await failureOf(without, "refused"), /pulling it failed: .*no basic auth credentials/);
  await using platform = await Platform.open(async () => {}, { flags, env: { HOME: home } });
  await create(platform, "pulled", { Image: name });
  await endpointIs(platform, "pulled", "InService");
  assert.equal(await probe(platform, { endpoint: "pulled" }, "say", "x"), "x");
  await remove(platform, "pulled");
  await engine.docker("rmi", name);
});
