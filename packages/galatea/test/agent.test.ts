/** `galatea agent` as a process: who may use it, how it gets models, its probes, and how it ends. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { silentLogger, systemClock } from "@galatea/base";
import type { Certificate } from "@galatea/base/certificates";
import { eventually, testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import {
  modelCacheLimits,
  ModelMissingError,
  type AgentInstanceSpec,
  type AgentRequest,
} from "@galatea/hosting/instance-agent";
import { HttpInstanceAgent } from "@galatea/hosting/instance-agent-http";
import { instanceLimits } from "@galatea/hosting";
import { certificateOf, RunningAgent, runGalatea } from "./agent-process-fixture.ts";
import { clientOf, RunningPlatform } from "./running-platform-fixture.ts";

const platformCertificate = certificateOf("platform.galatea");
let store: RunningPlatform;
before(async () => {
  store = await RunningPlatform.open();
  const s3 = new S3Client({ ...clientOf(store.url), forcePathStyle: true });
  const templates = fileURLToPath(new URL("../templates/onnx", import.meta.url));
  const Body = execFileSync("tar", ["-cz", "-C", templates, "classifier"]);
  await s3.send(new PutObjectCommand({ Bucket: "tenants", Key: `models/${archive}`, Body }));
  s3.destroy();
});
after(async () => {
  await store[Symbol.asyncDispose]();
});

const archive = "classifier.tar.gz";
/** The scores of the features 1, 0, 0, 0: the first row of weights, and the bias. */
const scores = [1.1, 0.2, 0.3].map(Math.fround);
const inference = (): AgentRequest => ({
  headers: { "content-type": "application/json" },
  body: Buffer.from(
    JSON.stringify({ inputs: [{ name: "features", datatype: "FP32", shape: [1, 4], data: [1, 0, 0, 0] }] }),
  ),
  isStreamed: false,
  mayGoElsewhere: false,
  signal: AbortSignal.timeout(testTimeoutMs),
});

const { credentials } = clientOf("");
const openAgent = (...flags: readonly string[]) =>
  RunningAgent.open({ objects: store.url, credentials, platform: platformCertificate, flags });

/** A client with the platform's certificate, or another one, or none. */
function connect(agent: RunningAgent, certificate: Certificate | null = platformCertificate): HttpInstanceAgent {
  const { hostname, port } = new URL(agent.url);
  return new HttpInstanceAgent({
    address: { kind: "tcp", host: hostname, port: Number(port) },
    token: null,
    trust: {
      caPem: agent.certificate.certificatePem,
      serverName: "agent.galatea",
      ...(certificate === null ? {} : { certificate }),
    },
    clock: systemClock,
    logger: silentLogger,
  });
}

let count = 0;
/** A multi-model container, which is in service without a model. */
function specOf(): AgentInstanceSpec {
  const id = `i-test${(count += 1)}`;
  const limits = { ...modelCacheLimits, diskBytesMax: 2 ** 30, memoryBytesMax: 2 ** 29 };
  return {
    id,
    owner: null,
    budget: { vcpuCount: 1, memoryBytes: 2 ** 30 },
    reservedBytes: 2 ** 27,
    containers: [
      {
        name: "primary",
        title: `e/v/${id}`,
        concurrencyMax: null,
        runtime: "tritonserver",
        models: { kind: "many", modelDataUrl: "s3://tenants/models/" },
        cache: { limits, guaranteedBytes: 0 },
        environment: { SAGEMAKER_MULTI_MODEL: "true" },
        modelMemoryBytes: 2 ** 29,
      },
    ],
    limits: instanceLimits,
    restartWaitMsMax: testTimeoutMs,
  };
}

async function startedOn(client: HttpInstanceAgent) {
  const instance = client.instance(specOf(), () => {});
  await instance.put("delete");
  await instance.view.started(AbortSignal.timeout(testTimeoutMs));
  return instance;
}

const statusOf = async (port: number, path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status;

test("an agent serves a platform that has a certificate of its authority, and announces its machine", async () => {
  await using agent = await openAgent();
  await using client = connect(agent);
  const { node, instances } = await client.state();
  assert.deepEqual([node.id, instances], ["local", []]);
  assert.ok(node.capacity.memoryBytes > 2 ** 28 && node.capacity.vcpuCount >= 1 && node.capacity.diskBytes > 0);
  const instance = await startedOn(client);
  const [container] = instance.containers;
  assert.ok(container !== undefined);
  using model = await container.acquire(archive, AbortSignal.timeout(testTimeoutMs));
  const { status, body } = await model.invoke(inference());
  assert.deepEqual([status, JSON.parse(await text(body)).outputs[0].data], [200, scores]);
  // The object is looked for in the platform's own store, with its signatures.
  await assert.rejects(container.acquire("absent.tar.gz", AbortSignal.timeout(testTimeoutMs)), ModelMissingError);
  assert.equal((await client.state()).instances.length, 1);
  assert.equal(await instance.delete(), true);
});

test("a client without a certificate of the authority is refused, and the agent logs it", async () => {
  await using agent = await openAgent();
  const refused = [
    [null, "UNABLE_TO_GET_ISSUER_CERT"],
    [certificateOf("platform.galatea"), "DEPTH_ZERO_SELF_SIGNED_CERT"],
  ] as const;
  for (const [certificate, reason] of refused) {
    await using client = connect(agent, certificate);
    const text = `The agent does not accept the certificate of this client (${reason}): an authority of the agent's --tls-ca has to sign it`;
    await assert.rejects(client.state(), { name: "AgentProtocolError", message: text });
    await assert.rejects(client.instance(specOf(), () => {}).put("delete"), { message: text });
  }
  await using client = connect(agent);
  assert.deepEqual((await client.state()).instances, []);
  await eventually(() => /a client's certificate is not accepted/.test(agent.printed));
});

test("SIGTERM: the readiness probe fails at once, requests in flight end first, and the agent ends when its instances are replaced", async () => {
  await using agent = await openAgent("--probe-port=0", "--drain-secs=600");
  assert.deepEqual(
    [await statusOf(agent.probePort, "/healthz"), await statusOf(agent.probePort, "/readyz")],
    [200, 200],
  );
  assert.equal(await statusOf(agent.probePort, "/state"), 404);
  assert.equal(await statusOf(agent.probePort, "/servingz"), 503);
  await using client = connect(agent);
  const instance = await startedOn(client);
  const [container] = instance.containers;
  const model = await container!.acquire(archive, AbortSignal.timeout(testTimeoutMs));
  const [server = 0] = serversOf(agent);
  assert.notEqual(server, 0);
  const ended = agent.end("SIGTERM");
  await eventually(async () => (await statusOf(agent.probePort, "/readyz")) === 503);
  assert.equal(await statusOf(agent.probePort, "/healthz"), 200);
  await eventually(() => instance.view.containers[0]?.health.isUnhealthy === true);
  assert.equal(instance.view.isInService, true);
  await assert.rejects(client.instance(specOf(), () => {}).put("delete"), /the instance agent is shutting down/);
  const { body } = await model.invoke(inference());
  assert.deepEqual(JSON.parse(await text(body)).outputs[0].data, scores);
  model[Symbol.dispose]();
  // The agent waits until the platform has replaced the instance.
  assert.equal(await instance.delete(), true);
  assert.equal(await ended, 0, agent.printed);
  assert.throws(() => process.kill(server, 0), { code: "ESRCH" });
});

test("instances end when no platform has been connected for the grace period", async () => {
  await using agent = await openAgent("--instance-grace-secs=1");
  {
    await using client = connect(agent);
    await startedOn(client);
  }
  await using client = connect(agent);
  // Each call without an event stream is no platform.
  await eventually(async () => (await client.state()).instances.length === 0);
  assert.match(agent.printed, /the platform has not returned: its instances end/);
});

test("an agent with missing or wrong files of certificates ends with a sentence that names the flag", async () => {
  const root = await mkdtemp(join(tmpdir(), "gal-ag-"));
  const run = async (...words: readonly string[]) => {
    const child = runGalatea(root, ["agent", ...words], {});
    let text = "";
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    const code = await new Promise((resolve) => child.once("close", resolve));
    return { code, text };
  };
  try {
    const bare = await run();
    assert.equal(bare.code, 1);
    assert.match(bare.text, /galatea agent needs --listen/);
    const absent = ["--tls-cert=/absent/a.pem", "--tls-key=/absent/b.pem", "--tls-ca=/absent/c.pem"];
    const unread = await run("--listen=127.0.0.1:0", ...absent, "--objects=http://127.0.0.1:1");
    assert.equal(unread.code, 1);
    assert.match(unread.text, /^galatea agent: cannot read the file of --tls-cert: ENOENT/m);
    const everywhere = await run("--listen=nowhere", ...absent, "--objects=http://127.0.0.1:1");
    assert.match(everywhere.text, /'nowhere' is not an address and a port, like 0\.0\.0\.0:8780/);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

/** Returns the processes of the agent's containers. */
function serversOf({ root }: RunningAgent): readonly number[] {
  const names = readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, "latin1");
      return command.includes("--sagemaker-socket=") && command.includes(root);
    } catch {
      return false;
    }
  });
  return names.map(Number);
}
