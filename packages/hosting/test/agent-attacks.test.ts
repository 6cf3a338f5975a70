import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { silentLogger, systemClock } from "@galatea/base";
import { eventually, testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import {
  AgentProtocolError,
  AgentServer,
  agentServerLimits,
  HttpInstanceAgent,
  PlatformSuperseded,
  type AgentAddress,
} from "../src/instance-agent-http/index.ts";
import {
  ContainerConnectionLost,
  RequestNotSent,
  type AgentRequest,
  type InstanceEvent,
} from "../src/instance-agent/index.ts";
import { openLocalAgent } from "./instance-agents-fixture.ts";

const common = { clock: systemClock, logger: silentLogger };
const token = "a token of this test";
const signal = () => AbortSignal.timeout(testTimeoutMs);

/** Opens an agent that can stop and start again at the same port. */
async function openWorld() {
  await using opening = new AsyncDisposableStack();
  const local = opening.use(await openLocalAgent());
  const serve = async (port: number) => {
    const listen: AgentAddress = { kind: "tcp", host: "127.0.0.1", port };
    return await AgentServer.open({
      ...common,
      agent: local.agent,
      listen,
      token,
      certificate: null,
      limits: agentServerLimits,
    });
  };
  const server = await serve(0);
  const { address } = server;
  assert.ok(address.kind === "tcp");
  const client = opening.use(new HttpInstanceAgent({ ...common, address, token, trust: null }));
  const closing = opening.move();
  const { port } = address;
  return { local, server, port, client, serve, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

type Fixture = Awaited<ReturnType<typeof openWorld>>;

async function started({ client, local }: Fixture, kind: "one" | "many" = "one") {
  const events: InstanceEvent[] = [];
  const instance = client.instance(local.specFor("serve", kind), (event) => events.push(event));
  await instance.put("delete");
  await instance.view.started(signal());
  const [container] = instance.containers;
  assert.ok(container !== undefined);
  return { instance, container, events };
}

const asked = (what: string, more: Partial<AgentRequest> = {}): AgentRequest => ({
  headers: { do: what },
  body: Buffer.from("question"),
  isStreamed: false,
  mayGoElsewhere: false,
  signal: signal(),
  ...more,
});

async function status(port: number, headers: Record<string, string>): Promise<readonly [number, string]> {
  const sent = request({ host: "127.0.0.1", port, path: "/state", headers, agent: false }).end();
  const [response] = await once(sent, "response");
  return [response.statusCode, JSON.parse(await text(response)).message];
}

test("clients without the token or with another protocol version are rejected with the reason", async () => {
  await using fixture = await openWorld();
  await using server = fixture.server;
  const authorization = `Bearer ${token}`;
  const unknown = "The token of this client is not valid";
  assert.deepEqual(await status(fixture.port, { "x-agent-protocol": "1" }), [400, unknown]);
  assert.deepEqual(await status(fixture.port, { "x-agent-protocol": "1", authorization: "Bearer no" }), [400, unknown]);
  assert.deepEqual(await status(fixture.port, { "x-agent-protocol": "2", authorization }), [
    400,
    "The agent speaks version 1 of its protocol, and the client 2: run the same version of Galatea on both",
  ]);
  await using stranger = new HttpInstanceAgent({ ...common, address: server.address, token: "no", trust: null });
  await assert.rejects(stranger.state(), (error: unknown) => error instanceof AgentProtocolError);
  await assert.rejects(stranger.instance(fixture.local.specFor("serve"), () => {}).put("delete"), AgentProtocolError);
  assert.deepEqual((await fixture.client.state()).instances, []);
  await assert.rejects(
    AgentServer.open({
      ...common,
      agent: fixture.local.agent,
      listen: server.address,
      token: null,
      certificate: null,
      limits: agentServerLimits,
    }),
    /only with a token/,
  );
});

test("when an agent ends, its requests fail and its instances are unhealthy until it is back with them", async () => {
  await using fixture = await openWorld();
  const { container, events } = await started(fixture);
  const pending = container.invoke(asked("hold"));
  await eventually(() => events.some((event) => event.kind === "line" && event.text === "held"));
  const { body } = await container.invoke(asked("trickle", { isStreamed: true }));
  const broken = assert.rejects(text(body));
  const failed = assert.rejects(pending, (error: unknown) => error instanceof ContainerConnectionLost);
  await fixture.server[Symbol.asyncDispose]();
  await Promise.all([failed, broken]);
  await assert.rejects(container.invoke(asked("echo")), ContainerConnectionLost);
  await assert.rejects(container.invoke(asked("echo", { mayGoElsewhere: true })), RequestNotSent);
  await eventually(() => container.view.health.isUnhealthy);
  await using _again = await fixture.serve(fixture.port);
  await eventually(() => container.view.isHealthy);
  assert.equal(await text((await container.invoke(asked("echo"))).body), "question");
});

test("instances that a returning agent no longer has are reported as ended", async () => {
  await using fixture = await openWorld();
  const { instance, events } = await started(fixture);
  await fixture.server[Symbol.asyncDispose]();
  await fixture.local.agent.instance(instance.spec, () => {}).delete();
  await using _again = await fixture.serve(fixture.port);
  await eventually(() => events.some(({ kind }) => kind === "ended"));
  assert.equal(instance.view.isInService, false);
});

test("a disconnected client releases its pinned models, and an expired lease is rejected", async () => {
  await using fixture = await openWorld();
  await using server = fixture.server;
  await fixture.local.putModel("a.tar.gz", "weights");
  const { instance, container } = await started(fixture, "many");
  const pins = () => container.view.models?.loadedModels()[0]?.pinCount;
  {
    await using leaving = new HttpInstanceAgent({ ...common, address: server.address, token, trust: null });
    const other = leaving.instance(instance.spec, () => {});
    assert.equal(await other.attach(), true);
    await other.containers[0]?.acquire("a.tar.gz", signal());
    await eventually(() => pins() === 1);
  }
  await eventually(() => pins() === 0);
  const model = await container.acquire("a.tar.gz", signal());
  await eventually(() => pins() === 1);
  model[Symbol.dispose]();
  await eventually(() => pins() === 0);
  await assert.rejects(model.invoke(asked("echo")), /the model is no longer leased/);
});

test("after a platform with a higher epoch has used the agent, the former one cannot put, invoke or delete instances", async () => {
  await using fixture = await openWorld();
  await using server = fixture.server;
  const platform = (epoch: number) =>
    new HttpInstanceAgent({ ...common, address: server.address, token, trust: null, epoch });
  await using former = platform(1);
  const kept = former.instance(fixture.local.specFor("serve"), () => {});
  await kept.put("delete");
  await kept.view.started(signal());
  const { port } = fixture;
  const late = fixture.local.specFor("serve");
  const headers = {
    "x-agent-protocol": "1",
    "x-agent-epoch": "1",
    authorization: `Bearer ${token}`,
    expect: "100-continue",
  };
  const putting = request({
    host: "127.0.0.1",
    port,
    method: "PUT",
    path: `/instances/${late.id}`,
    headers,
    agent: false,
  });
  const refused = once(putting, "response");
  putting.flushHeaders();
  // The agent has admitted the request, and waits for its body.
  await once(putting, "continue");
  await using next = platform(2);
  const adopted = next.instance(kept.spec, () => {});
  assert.equal(await adopted.put("retry"), true);
  putting.end(JSON.stringify({ spec: late, onStartFailure: "retry" }));
  const [response] = await refused;
  assert.equal(response.headers["x-agent-error"], "superseded");
  await assert.rejects(kept.delete(), PlatformSuperseded);
  await assert.rejects(kept.containers[0]?.invoke(asked("echo")) ?? Promise.resolve(), PlatformSuperseded);
  await assert.rejects(former.instance(late, () => {}).put("delete"), PlatformSuperseded);
  assert.deepEqual(
    (await next.state()).instances.map(({ spec }) => spec.id),
    [kept.id],
  );
  const reply = await adopted.containers[0]?.invoke(asked("echo"));
  assert.equal(reply === undefined ? "" : await text(reply.body), "question");
});
