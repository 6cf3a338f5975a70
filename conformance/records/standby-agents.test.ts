/** Two `galatea up --standby` whose instances run on agents: the next leader adopts the instances, and a former one cannot change them. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { DeleteEndpointCommand } from "@aws-sdk/client-sagemaker";
import { faultyRequest } from "../faults/http-client.ts";
import { bucket, createEndpoint, endpointIs, errorOfInvocation, invoke, prefix } from "../faults/platform.ts";
import { until } from "../faults/until.ts";
import type { Replica } from "./replica-fixture.ts";
import { leads, target, TwoPlatforms } from "./two-platforms-fixture.ts";

const modelDataUrl = `s3://${bucket}/${prefix}${target}`;
/** The endpoints, with the target of their invocations. */
const endpoints = [
  ["many", target],
  ["single", null],
] as const;

let platforms: TwoPlatforms;

before(async () => {
  platforms = await TwoPlatforms.open();
  for (const replica of platforms.replicas) replica.start();
});
after(() => platforms[Symbol.asyncDispose]());

async function pidOf(replica: Replica, [name, of]: (typeof endpoints)[number]): Promise<string> {
  const { outputs } = JSON.parse(await invoke(replica, name, of, faultyRequest("pid"))) as {
    outputs: { name: string; data: string[] }[];
  };
  return outputs.find((output) => output.name === "TEXT")?.data[0] ?? "";
}

/** The model processes that respond, over enough calls to reach each instance that has the model. */
async function modelPids(replica: Replica): Promise<ReadonlySet<string>> {
  const pids = new Set<string>();
  for (let count = 0; count < 20; count += 1) for (const each of endpoints) pids.add(await pidOf(replica, each));
  return pids;
}

interface Call {
  readonly replica: Replica;
  readonly sentMs: number;
  /** The process of the model; null if the call failed. */
  readonly pid: string | null;
  readonly error: string;
}

/** Invokes the endpoints in several loops until `stop`. A loop changes to the other replica after each failure, as a load balancer does. */
function load(first: Replica, invoked: readonly (typeof endpoints)[number][] = endpoints) {
  const calls: Call[] = [];
  const stopping = new AbortController();
  const loop = async (endpoint: (typeof endpoints)[number]) => {
    for (let replica = first; !stopping.signal.aborted;) {
      const sentMs = performance.now();
      const outcome = await pidOf(replica, endpoint).then(
        (pid) => ({ pid, error: "" }),
        (error: Error) => ({ pid: null, error: `${error.name}: ${error.message}` }),
      );
      calls.push({ replica, sentMs, ...outcome });
      if (outcome.pid === null) replica = platforms.replicas.find((each) => each !== replica) ?? replica;
    }
  };
  const ended = Promise.all([...invoked, ...invoked].map(loop));
  const stop = async () => {
    stopping.abort();
    await ended;
  };
  return { calls, stop };
}

test("kill -9 of the leader under load: the next leader adopts the instances, and fails no request from then on", async (t) => {
  const { leader, standby } = await platforms.settled();
  await createEndpoint(leader, { name: "many", instanceCount: 2 });
  await createEndpoint(leader, { name: "single", instanceCount: 2, modelDataUrl });
  for (const [name] of endpoints) await endpointIs(leader, name, "InService");
  const servers = platforms.servers();
  assert.equal(servers.flat().length, 4);
  const pids = await modelPids(leader);
  const { calls, stop } = load(leader);
  await until("the leader responds under load", () => calls.length > 50);
  const killedMs = performance.now();
  await leader.kill();
  await leads(standby);
  const leadsMs = performance.now();
  const served = () => calls.filter(({ replica, sentMs }) => replica === standby && sentMs > leadsMs);
  await until("the next leader responds under load", () => served().length > 200);
  await stop();
  const failed = calls.filter(({ pid }) => pid === null);
  t.diagnostic(
    `leads after ${((leadsMs - killedMs) / 1000).toFixed(1)} s; ${calls.length} calls, of which ${failed.length} failed before that`,
  );
  assert.deepEqual(
    served().filter(({ pid }) => pid === null),
    [],
  );
  for (const { pid } of calls) assert.ok(pid === null || pids.has(pid), `the model process ${pid} is another one`);
  assert.deepEqual(platforms.servers(), servers);
  for (const [name] of endpoints) await endpointIs(standby, name, "InService");
  leader.start();
});

test("a leader that hangs (SIGSTOP) while another one leads changes no instance when it continues", async () => {
  const { leader, standby } = await platforms.settled();
  const pids = await modelPids(leader);
  leader.signal("SIGSTOP");
  await leads(standby);
  await standby.sagemaker.send(new DeleteEndpointCommand({ EndpointName: "single" }));
  await until("the endpoint is deleted", async () => platforms.servers().flat().length === 2);
  const servers = platforms.servers();
  leader.signal("SIGCONT");
  assert.equal(await leader.ended(), 1);
  assert.match(leader.log(), /another platform has taken over the records/);
  assert.deepEqual(platforms.servers(), servers);
  assert.ok(pids.has(await pidOf(standby, ["many", target])));
  const { name } = await errorOfInvocation(pidOf(standby, ["single", null]));
  assert.equal(name, "ValidationError");
  leader.start();
});

test("a leader that stops (SIGTERM) leaves its instances to the next one", async () => {
  const { leader, standby } = await platforms.settled();
  const servers = platforms.servers();
  const pid = await pidOf(leader, ["many", target]);
  leader.signal("SIGTERM");
  assert.equal(await leader.ended(), 0);
  await leads(standby);
  assert.equal(await pidOf(standby, ["many", target]), pid);
  assert.deepEqual(platforms.servers(), servers);
});

test("an agent that drains (SIGTERM) under load ends when its instance is replaced, and no request fails", async () => {
  const [first, second] = platforms.agents;
  assert.ok(first !== undefined && second !== undefined);
  const leader = await until("a replica leads", async () => {
    const roles = await Promise.all(platforms.replicas.map((replica) => replica.role()));
    return platforms.replicas[roles.indexOf("leader")] ?? null;
  });
  const { calls, stop } = load(leader, [["many", target]]);
  await until("it responds under load", () => calls.length > 20);
  assert.equal(await first.end("SIGTERM"), 0);
  await until("the instance is replaced", () => platforms.servers()[1]?.length === 2);
  const ended = calls.length;
  await until("it responds afterwards", () => calls.length > ended + 20);
  await stop();
  assert.deepEqual(
    calls.filter(({ pid }) => pid === null),
    [],
  );
  assert.doesNotMatch(first.printed, /not replaced in time/);
});
