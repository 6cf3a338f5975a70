/**
 * `galatea restart`, and kill -9 of the platform, with fifty endpoints under load: the errors of clients, and the
 * processes that continue.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { after, before, test } from "node:test";
import { freePorts } from "../environments/index.ts";
import { InvokeEndpointCommand, SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { bucket, createEndpoint, credentials, endpointIs, Platform, prefix } from "./platform.ts";
import { tarball } from "./tarball.ts";
import { until } from "./until.ts";

/** Number of endpoints: fifty, or fewer if they would need more than half of the machine's memory. */
const endpointCount = Math.min(50, Math.floor(totalmem() / 2 / 2 ** 27));
const clientCount = 8;
const names = Array.from({ length: endpointCount }, (_, index) => `e${index}`);

let platform: Platform;
before(async () => {
  platform = await Platform.open(async () => {}, { verified: true, port: (await freePorts(1))[0] ?? 0 });
  const program = readFileSync(new URL("models/faulty.py", import.meta.url));
  const archive = tarball([
    { path: "model/config.pbtxt", body: faultyConfig },
    { path: "model/1/model.py", body: program },
  ]);
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: `${prefix}a.tar.gz`, Body: archive }));
  for (const name of names) await createEndpoint(platform, { name, modelDataUrl: `s3://${bucket}/${prefix}a.tar.gz` });
  for (const name of names) await endpointIs(platform, name, "InService");
});
after(async () => {
  await platform[Symbol.asyncDispose]();
});

/** Clients that call one endpoint after another as an SDK does: connections are reused, and failed connections are retried. */
class Load {
  readonly #runtime = new SageMakerRuntimeClient({ endpoint: platform.url, region: "us-east-1", credentials });
  readonly #stop = new AbortController();
  readonly #clients: readonly Promise<void>[];
  readonly errors: unknown[] = [];
  answeredCount = 0;
  longestGapMs = 0;
  #answeredMs = performance.now();

  constructor() {
    this.#clients = Array.from({ length: clientCount }, (_, index) => this.#sendRequest(index));
  }

  async #sendRequest(from: number): Promise<void> {
    for (let index = from; !this.#stop.signal.aborted; index += clientCount) {
      try {
        await invoked(this.#runtime, names[index % endpointCount] ?? "", "echo");
        const nowMs = performance.now();
        this.longestGapMs = Math.max(this.longestGapMs, nowMs - this.#answeredMs);
        this.#answeredMs = nowMs;
        this.answeredCount += 1;
      } catch (error) {
        this.errors.push(error);
      }
    }
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#clients);
    this.#runtime.destroy();
  }
}

async function invoked(runtime: SageMakerRuntimeClient, name: string, does: string): Promise<string> {
  const requested = { EndpointName: name, ContentType: "application/json", Body: faultyRequest(does) };
  return (await runtime.send(new InvokeEndpointCommand(requested))).Body.transformToString();
}

/** Returns the process of each endpoint's model; each load starts another one. */
const workerPids = () =>
  Promise.all(
    names.map(async (name) => {
      const { outputs } = JSON.parse(await invoked(platform.runtime, name, "pid")) as {
        outputs: { name: string; data: string[] }[];
      };
      return outputs.find((output) => output.name === "TEXT")?.data[0];
    }),
  );

/** Runs `interrupt` under load, and returns the duration without responses. */
async function interrupted(what: string, interrupt: () => Promise<void>): Promise<Load> {
  const load = new Load();
  await until("requests succeed", () => load.answeredCount > 10 * endpointCount);
  load.longestGapMs = 0;
  await interrupt();
  const before = load.answeredCount;
  await until("requests succeed again", () => load.answeredCount > before + 10 * endpointCount);
  await load.end();
  console.log(`${what}: at most ${load.longestGapMs.toFixed(0)} ms without a response; ${load.errors.length} failed`);
  return load;
}

test("galatea restart under load fails no request and loads no model again", async () => {
  const pids = await workerPids();
  const { errors } = await interrupted("galatea restart", () => platform.restart());
  assert.deepEqual(errors, []);
  assert.deepEqual(await workerPids(), pids);
});

test("kill -9 of the platform under load: its next start has every endpoint with its model in memory", async () => {
  const pids = await workerPids();
  await interrupted("kill -9", async () => {
    await platform.kill();
    await platform.startAgain();
  });
  assert.deepEqual(await workerPids(), pids);
});
