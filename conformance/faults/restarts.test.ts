/** Instances outlive the platform: kill -9 and `galatea restart` with loaded models and requests in flight. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { freePorts } from "../environments/index.ts";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { bucket, createEndpoint, endpointIs, invoke, Platform, prefix } from "./platform.ts";
import { tarball } from "./tarball.ts";
import { until } from "./until.ts";

const program = readFileSync(new URL("models/faulty.py", import.meta.url));
const archive = tarball([
  { path: "model/config.pbtxt", body: faultyConfig },
  { path: "model/1/model.py", body: program },
]);

let platform: Platform;
before(async () => {
  platform = await Platform.open(async () => {}, { verified: true, port: (await freePorts(1))[0] ?? 0 });
  for (const name of ["a.tar.gz", "b.tar.gz"])
    await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: prefix + name, Body: archive }));
  await createEndpoint(platform, { name: "many" });
  await createEndpoint(platform, { name: "one", modelDataUrl: `s3://${bucket}/${prefix}a.tar.gz` });
  for (const name of ["many", "one"]) await endpointIs(platform, name, "InService");
});
after(async () => {
  await platform[Symbol.asyncDispose]();
});

/** Returns the process of the model; each load starts another one. */
async function workerPid(name: string, target: string | null): Promise<string> {
  const { outputs } = JSON.parse(await invoke(platform, name, target, faultyRequest("pid"))) as {
    outputs: { name: string; data: string[] }[];
  };
  return outputs.find((output) => output.name === "TEXT")?.data[0] ?? "";
}

const workerPids = () =>
  Promise.all([workerPid("many", "a.tar.gz"), workerPid("many", "b.tar.gz"), workerPid("one", null)]);

test("after kill -9 the next platform has the same instances with the same models in memory", async () => {
  const pids = await workerPids();
  await platform.kill();
  await platform.startAgain();
  assert.deepEqual(await workerPids(), pids);
  for (const name of ["many", "one"]) await endpointIs(platform, name, "InService");
});

test("kill -9 while the platform restores its instances loses none of them", async () => {
  const pids = await workerPids();
  for (let round = 0; round < 3; round++) {
    await platform.kill();
    await platform.startAgain();
  }
  assert.deepEqual(await workerPids(), pids);
});

test("galatea restart: a running request completes, new requests wait, and no model is loaded again", async () => {
  const pids = await workerPids();
  const stop = new AbortController();
  let responseCount = 0;
  const pending = (async () => {
    while (!stop.signal.aborted) {
      await invoke(platform, "many", "a.tar.gz", faultyRequest("echo"));
      responseCount += 1;
    }
  })();
  await platform.restart();
  const before = responseCount;
  await until("requests succeed after it", () => responseCount > before);
  stop.abort();
  await pending;
  assert.deepEqual(await workerPids(), pids);
});

test("an instance that was killed with its platform is restarted, and the others keep running", async () => {
  const pids = await workerPids();
  const servers = platform.servers();
  await platform.kill();
  assert.equal(servers.length, 2);
  for (const pid of servers.slice(0, 1)) process.kill(pid, "SIGKILL");
  await platform.startAgain();
  const again = await workerPids();
  assert.notDeepEqual(again, pids);
  assert.ok(again[2] === pids[2] || (again[0] === pids[0] && again[1] === pids[1]));
});
