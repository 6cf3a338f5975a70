/** A platform whose instances run on two agents: the calls of an SDK, and kill -9 of an agent and of the platform. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { GetObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { DeleteEndpointCommand } from "@aws-sdk/client-sagemaker";
import { InvokeEndpointAsyncCommand, InvokeEndpointWithResponseStreamCommand } from "@aws-sdk/client-sagemaker-runtime";
import { certificateOf, RunningAgent } from "../../packages/galatea/test/agent-process-fixture.ts";
import { shareMadePython } from "../shared-python.ts";
import { faultyConfig } from "./faulty-model.ts";
import { faultyRequest } from "./http-client.ts";
import { bucket, createEndpoint, credentials, endpointIs, invoke, Platform, prefix } from "./platform.ts";
import { processesMarked } from "./processes.ts";
import { tarball } from "./tarball.ts";
import { until } from "./until.ts";

const program = readFileSync(new URL("models/faulty.py", import.meta.url));
const archive = tarball([
  { path: "model/config.pbtxt", body: faultyConfig },
  { path: "model/1/model.py", body: program },
]);
const name = "remote";
const target = "model.tar.gz";
const certificate = certificateOf("platform.galatea");

let directory: string;
let agents: [RunningAgent, RunningAgent];
let platform: Platform;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-agents-"));
  const port = await freePort();
  const openAgent = async (each: string) => {
    const data = join(directory, each);
    await shareMadePython(data);
    const flags = [`--data=${data}`, `--worker-write=${join(directory, "meeting")}`];
    return await RunningAgent.open({ objects: `http://127.0.0.1:${port}`, credentials, platform: certificate, flags });
  };
  agents = [await openAgent("a"), await openAgent("b")];
  const files = {
    "platform.pem": certificate.certificatePem,
    "platform-key.pem": certificate.keyPem,
    "agents.pem": agents.map((agent) => agent.certificate.certificatePem).join(""),
  };
  for (const [file, text] of Object.entries(files)) await writeFile(join(directory, file), text);
  const named = agents.map(({ url }, index) => `--agent=${"ab"[index]}=${url}`);
  const tls = ["cert=platform.pem", "key=platform-key.pem", "ca=agents.pem"].map((each) => {
    return `--agent-tls-${each.replace("=", `=${directory}/`)}`;
  });
  platform = await Platform.open(undefined, { verified: true, port, flags: [...named, ...tls] });
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: prefix + target, Body: archive }));
});

after(async () => {
  await platform[Symbol.asyncDispose]();
  for (const agent of agents) {
    await agent.end("SIGTERM");
    // Containers of the killed agent live on for a while.
    for (const { pid } of processesMarked(`TMPDIR=${agent.root}\0`)) process.kill(pid, "SIGKILL");
    await agent[Symbol.asyncDispose]();
  }
  await rm(directory, { recursive: true, force: true });
});

const serversOf = ({ root }: RunningAgent) =>
  processesMarked(`TMPDIR=${root}\0`)
    .filter(({ command }) => command.includes("--sagemaker-socket="))
    .map(({ pid }) => pid);
const call = (does: string) => invoke(platform, name, target, faultyRequest(does));
const textOf = async (does: string) => {
  const { outputs } = JSON.parse(await call(does)) as { outputs: { name: string; data: string[] }[] };
  return outputs.find((output) => output.name === "TEXT")?.data[0] ?? "";
};
const hasResponse = () =>
  call("echo").then(
    () => true,
    () => false,
  );
/** Returns the processes that respond, over enough calls to reach each instance that has the model. */
async function answeringPids(): Promise<ReadonlySet<string>> {
  const pids = new Set<string>();
  for (let count = 0; count < 20; count += 1) pids.add(await textOf("pid"));
  return pids;
}

test("an endpoint has its instances on both agents and none on the platform's machine, and responds", async () => {
  await createEndpoint(platform, { name, instanceCount: 2 });
  await endpointIs(platform, name, "InService");
  assert.deepEqual([serversOf(agents[0]).length, serversOf(agents[1]).length, platform.servers().length], [1, 1, 0]);
  assert.match(await call("echo"), /"OUT"/);
});

test("a single model is downloaded by the agent, and responds to a streamed call", async () => {
  await createEndpoint(platform, { name: "single", modelDataUrl: `s3://${bucket}/${prefix}${target}` });
  await endpointIs(platform, "single", "InService");
  const streamed = await platform.runtime.send(
    new InvokeEndpointWithResponseStreamCommand({
      EndpointName: "single",
      ContentType: "application/json",
      Body: faultyRequest("echo"),
    }),
  );
  let text = "";
  for await (const { PayloadPart } of streamed.Body ?? []) text += Buffer.from(PayloadPart?.Bytes ?? []).toString();
  assert.match(text, /"OUT"/);
});

test("an asynchronous invocation runs on an agent, and its output is in the object store", async () => {
  const output = `s3://${bucket}/outputs`;
  await createEndpoint(platform, {
    name: "queued",
    asyncOutput: output,
    modelDataUrl: `s3://${bucket}/${prefix}${target}`,
  });
  await endpointIs(platform, "queued", "InService");
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: "inputs/one", Body: faultyRequest("echo") }));
  const { OutputLocation = "" } = await platform.runtime.send(
    new InvokeEndpointAsyncCommand({
      EndpointName: "queued",
      InputLocation: `s3://${bucket}/inputs/one`,
      ContentType: "application/json",
    }),
  );
  const Key = OutputLocation.slice(`s3://${bucket}/`.length);
  const text = await until("the output is there", () =>
    platform.s3.send(new GetObjectCommand({ Bucket: bucket, Key })).then(
      ({ Body }) => Body?.transformToString() ?? null,
      () => null,
    ),
  );
  assert.match(text, /"OUT"/);
  for (const EndpointName of ["single", "queued"])
    await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName }));
  await until("their instances have ended", () => agents.flatMap(serversOf).length === 2);
});

test("after kill -9 of the platform its next run has the same instances with their loaded models", async () => {
  const [servers, pids] = [agents.map(serversOf), await answeringPids()];
  await platform.kill();
  await platform.startAgain();
  await endpointIs(platform, name, "InService");
  assert.deepEqual(await answeringPids(), pids);
  assert.deepEqual(agents.map(serversOf), servers);
});

test("requests that arrive while the platform adopts its instances succeed without a second load of a model", async () => {
  const pids = await answeringPids();
  for (let round = 0; round < 3; round += 1) {
    await platform.kill();
    await platform.startAgain();
    const found = await Promise.all(Array.from({ length: 8 }, () => textOf("pid")));
    for (const pid of found) assert.ok(pids.has(pid), `${pid} is not one of ${[...pids].join()}`);
  }
});

test("kill -9 of an agent: the endpoint responds from the other one, and its lost instance is replaced there", async () => {
  await agents[0].end("SIGKILL");
  await until("an invocation succeeds", hasResponse);
  await until("the lost instance is replaced", () => serversOf(agents[1]).length === 2);
  await endpointIs(platform, name, "InService");
  for (let count = 0; count < 10; count += 1) assert.match(await call("echo"), /"OUT"/);
});

test("an agent that does not accept the platform's certificate gets no instances, and the log says why", async () => {
  const stranger = certificateOf("platform.galatea");
  await writeFile(join(directory, "platform.pem"), stranger.certificatePem);
  await writeFile(join(directory, "platform-key.pem"), stranger.keyPem);
  await platform.kill();
  await platform.startAgain();
  await until("it is logged", () =>
    platform
      .log()
      .includes(
        "The agent does not accept the certificate of this client (DEPTH_ZERO_SELF_SIGNED_CERT): an authority of the agent's --tls-ca has to sign it",
      ),
  );
  await writeFile(join(directory, "platform.pem"), certificate.certificatePem);
  await writeFile(join(directory, "platform-key.pem"), certificate.keyPem);
  await platform.kill();
  await platform.startAgain();
  await endpointIs(platform, name, "InService");
  await until("an invocation succeeds", hasResponse);
});

test("deleting an endpoint ends its instances on the agents", async () => {
  await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: name }));
  await until("its instances have ended", () => serversOf(agents[1]).length === 0);
});
