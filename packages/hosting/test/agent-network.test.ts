import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import * as fc from "fast-check";
import { silentLogger, systemClock, type Clock } from "@galatea/base";
import { createCertificate, type Certificate } from "@galatea/base/certificates";
import { eventually, testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { instanceAgentContract } from "../src/contracts/index.ts";
import {
  ContainerConnectionLost,
  RequestNotSent,
  type AgentContainer,
  type AgentRequest,
  type InstanceEvent,
} from "../src/instance-agent/index.ts";
import {
  agentClientLimits,
  AgentServer,
  agentServerLimits,
  HttpInstanceAgent,
  type AgentClientLimits,
  type AgentTlsOptions,
} from "../src/instance-agent-http/index.ts";
import { FaultyNetwork } from "./faulty-network-fixture.ts";
import { openLocalAgent } from "./instance-agents-fixture.ts";

const logger = silentLogger;
const token = "a token of this test";
const serverName = "agent.galatea";
const dayMs = 24 * 3600 * 1000;
const signal = () => AbortSignal.timeout(testTimeoutMs);

const certificateFrom = (fromMs: number, untilMs: number, name = serverName): Certificate =>
  createCertificate({
    names: [name],
    notBefore: new Date(Date.now() + fromMs),
    notAfter: new Date(Date.now() + untilMs),
  });
const certificate = certificateFrom(-dayMs, dayMs);
const trustIn = (...certificates: readonly Certificate[]): AgentTlsOptions => ({
  caPem: certificates.map(({ certificatePem }) => certificatePem).join(""),
  serverName,
});

interface WorldOptions {
  readonly certificate?: Certificate | null;
  readonly limits?: Partial<AgentClientLimits>;
  /** The clock of the agent's machine. */
  readonly agentClock?: Clock;
  readonly eventsMax?: number | undefined;
}

/** Opens an agent over TLS, with clients that reach it through a faulty network. */
async function openWorld(options: WorldOptions = {}) {
  await using opening = new AsyncDisposableStack();
  const { agentClock = systemClock } = options;
  const local = opening.use(await openLocalAgent(options.eventsMax, agentClock));
  const listen = { kind: "tcp", host: "127.0.0.1", port: 0 } as const;
  const offered = options.certificate === undefined ? certificate : options.certificate;
  const server = opening.use(
    await AgentServer.open({
      agent: local.agent,
      listen,
      token,
      certificate: offered,
      limits: agentServerLimits,
      clock: agentClock,
      logger,
    }),
  );
  assert.ok(server.address.kind === "tcp");
  const network = opening.use(await FaultyNetwork.open(server.address.port));
  const limits = { ...agentClientLimits, ...options.limits };
  const connect = (trust: AgentTlsOptions | null = trustIn(certificate)) => {
    const address = { ...listen, port: network.port };
    return closing.use(new HttpInstanceAgent({ address, token, trust, limits, clock: systemClock, logger }));
  };
  const closing = opening.move();
  return { local, server, network, connect, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

type Fixture = Awaited<ReturnType<typeof openWorld>>;

async function started({ connect, local }: Fixture, kind: "one" | "many" = "one") {
  const events: InstanceEvent[] = [];
  const client = connect();
  const instance = client.instance(local.specFor("serve", kind), (event) => events.push(event));
  await instance.put("delete");
  await instance.view.started(signal());
  const [container] = instance.containers;
  assert.ok(container !== undefined);
  const hasLine = (line: string) => events.some((event) => event.kind === "line" && event.text === line);
  return { client, instance, container, events, hasLine };
}

const requestTo = (what: string, more: Partial<AgentRequest> = {}): AgentRequest => ({
  headers: { do: what },
  body: Buffer.from("question"),
  isStreamed: false,
  mayGoElsewhere: false,
  signal: signal(),
  ...more,
});

const isLost = (error: unknown) => error instanceof ContainerConnectionLost && !(error instanceof RequestNotSent);
const echo = async (container: AgentContainer) => await text((await container.invoke(requestTo("echo"))).body);

instanceAgentContract("agent over TLS, far away, in fragments of 700 bytes", async (eventsMax) => {
  const fixture = await openWorld({ eventsMax });
  fixture.network.delayMs = 3;
  fixture.network.chunkBytesMax = 700;
  return {
    ...fixture.local,
    agent: fixture.connect(),
    connect: () => Promise.resolve(fixture.connect()),
    [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose](),
  };
});

test("calls to a machine that vanishes without closing connections fail, and the client reconnects when it returns", async () => {
  await using fixture = await openWorld();
  const { network } = fixture;
  const { instance, container, hasLine } = await started(fixture);
  const pending = assert.rejects(container.invoke(requestTo("hold")), isLost);
  await eventually(() => hasLine("held"));
  const { body } = await container.invoke(requestTo("trickle", { isStreamed: true }));
  const streamed = assert.rejects(text(body));
  const { port } = network;
  network.isSilent = true;
  network.refuse();
  const calls = [instance.usages(), instance.delete(), container.executionParameters(signal())];
  await Promise.all([pending, streamed, ...calls.map((call) => assert.rejects(call, isLost))]);
  assert.equal(container.view.health.isUnhealthy, true);
  await assert.rejects(container.invoke(requestTo("echo", { mayGoElsewhere: true })), RequestNotSent);
  network.cut();
  network.isSilent = false;
  await network.accept(port);
  await eventually(() => container.view.isHealthy);
  assert.equal(await echo(container), "question");
});

test("an agent that stalls is unhealthy meanwhile, and its pending responses arrive afterwards", async () => {
  await using fixture = await openWorld();
  const { network } = fixture;
  const { container } = await started(fixture);
  const { body } = await container.invoke(requestTo("trickle", { isStreamed: true }));
  const late = container.invoke(requestTo("echo"));
  network.isSilent = true;
  await eventually(() => container.view.health.isUnhealthy);
  network.isSilent = false;
  await eventually(() => container.view.isHealthy);
  assert.equal(await text((await late).body), "question");
  await new Promise((resolve) => body.once("data", resolve));
  body.destroy();
});

test("calls to an agent that stalls beyond the limit fail, although it accepts connections", async () => {
  await using fixture = await openWorld({ limits: { stallMsMax: 1000 } });
  const { network } = fixture;
  const { client, container, hasLine } = await started(fixture);
  const pending = assert.rejects(container.invoke(requestTo("hold")), isLost);
  await eventually(() => hasLine("held"));
  network.isSilent = true;
  await pending;
  await assert.rejects(client.state(), isLost);
});

test("a call whose response is lost is repeated: one instance is started, deleted once, and no model stays pinned", async () => {
  await using fixture = await openWorld();
  const { network, local } = fixture;
  await local.putModel("a.tar.gz", "weights");
  const client = fixture.connect();
  const spec = local.specFor("serve", "many");
  const instance = client.instance(spec, () => {});
  /** Performs a call whose response is lost after the agent has processed it, and repeats the call. */
  const repeated = async <Result>(call: () => Promise<Result>, hasActed: () => Promise<boolean>): Promise<Result> => {
    network.delayMs = 200;
    const lost = assert.rejects(call(), isLost);
    await eventually(hasActed);
    network.cut();
    await lost;
    network.delayMs = 0;
    return await call();
  };
  const isListed = async () => (await local.agent.state()).instances.some(({ spec: { id } }) => id === spec.id);
  assert.equal(await instance.attach(), false);
  assert.equal(await repeated(() => instance.put("delete"), isListed), true);
  await instance.view.started(signal());
  const [container] = instance.containers;
  assert.ok(container !== undefined);
  const pins = async () => {
    const [listed] = (await local.agent.state()).instances;
    return listed?.containers[0]?.models[0]?.pinCount ?? 0;
  };
  const model = await repeated(
    () => container.acquire("a.tar.gz", signal()),
    async () => (await pins()) > 0,
  );
  await eventually(async () => (await pins()) === 1);
  assert.equal(await text((await model.invoke(requestTo("echo"))).body), "question");
  model[Symbol.dispose]();
  await eventually(async () => (await pins()) === 0);
  const wasDeleted = await repeated(
    () => instance.delete(),
    async () => !(await isListed()),
  );
  assert.equal(wasDeleted, false);
});

test("property: under any network faults every call ends, and client and agent agree afterwards", async () => {
  const faults = fc.array(
    fc.record({
      do: fc.constantFrom("cut" as const, "silence" as const, "refuse" as const, "slow" as const),
      forMs: fc.nat({ max: 60 }),
    }),
    { minLength: 1, maxLength: 8 },
  );
  const calls = fc.array(fc.constantFrom("echo" as const, "acquire" as const, "state" as const, "usages" as const), {
    minLength: 1,
    maxLength: 12,
  });
  await using fixture = await openWorld({ limits: { connectMsMax: 200, silenceMsMax: 700, stallMsMax: 1000 } });
  const { network, local } = fixture;
  const { port } = network;
  await local.putModel("a.tar.gz", "weights");
  const { client, instance, container } = await started(fixture, "many");
  const perform: Readonly<Record<"echo" | "acquire" | "state" | "usages", () => Promise<unknown>>> = {
    echo: async () => {
      using model = await container.acquire("a.tar.gz", signal());
      assert.equal(await text((await model.invoke(requestTo("echo"))).body), "question");
    },
    acquire: async () => (await container.acquire("a.tar.gz", signal()))[Symbol.dispose](),
    state: () => client.state(),
    usages: () => instance.usages(),
  };
  const inflict: Readonly<Record<"cut" | "silence" | "refuse" | "slow", (forMs: number) => Promise<void>>> = {
    cut: () => Promise.resolve(network.cut()),
    silence: async (forMs) => {
      network.isSilent = true;
      await pause(10 * forMs);
      network.isSilent = false;
    },
    refuse: async (forMs) => {
      network.refuse();
      network.cut();
      await pause(forMs);
      await network.accept(port);
    },
    slow: async (forMs) => {
      network.delayMs = forMs / 10;
      await pause(forMs);
      network.delayMs = 0;
    },
  };
  await fc.assert(
    fc.asyncProperty(faults, calls, async (faulty, called) => {
      const ended = called.map((name) =>
        perform[name]().catch((error: unknown) => assert.ok(isLost(error), String(error))),
      );
      for (const { do: fault, forMs } of faulty) await inflict[fault](forMs);
      await Promise.all(ended);
      // The first call may use a connection of the pool that the last fault has closed.
      await eventually(async () => {
        const error: unknown = await perform.echo().then(
          () => null,
          (reason: unknown) => reason,
        );
        assert.ok(error === null || isLost(error), String(error));
        return error === null;
      });
      await eventually(() => container.view.isHealthy);
      const [listed] = (await local.agent.state()).instances;
      const pins = () => container.view.models?.loadedModels().map(({ pinCount }) => pinCount);
      await eventually(() => pins()?.join() === "0");
      assert.equal(listed?.spec.id, instance.id);
    }),
    { numRuns: 15 },
  );
  assert.ok(network.connectionCount < 40, "connections of failed calls are closed");
});

test("invalid certificates are rejected with the reason before any request is sent", async () => {
  const cases: readonly (readonly [offered: Certificate | null, trust: AgentTlsOptions | null, reason: RegExp])[] = [
    [certificate, trustIn(certificateFrom(-dayMs, dayMs)), /self-signed certificate|unable to verify/],
    [certificateFrom(-dayMs, dayMs, "another.name"), null, /altnames/],
    [certificateFrom(-2 * dayMs, -dayMs), null, /certificate has expired/],
    [certificateFrom(dayMs, 2 * dayMs), null, /certificate is not yet valid/],
    [null, trustIn(certificate), /wrong version number|packet length too long/],
  ];
  for (const [offered, trust, reason] of cases) {
    await using fixture = await openWorld({ certificate: offered });
    const client = fixture.connect(trust ?? trustIn(offered ?? certificate));
    await assert.rejects(client.state(), (error: Error) => isLost(error) && reason.test(error.message), String(reason));
    await assert.rejects(client.instance(fixture.local.specFor("serve"), () => {}).put("delete"), isLost);
    assert.deepEqual((await fixture.local.agent.state()).instances, []);
  }
  await using fixture = await openWorld();
  const address = { kind: "tcp", host: "127.0.0.1", port: fixture.network.port } as const;
  await using plain = new HttpInstanceAgent({ address, token, trust: null, clock: systemClock, logger });
  await assert.rejects(plain.state(), isLost);
  const listen = { kind: "tcp", host: "0.0.0.0", port: 0 } as const;
  const options = { agent: fixture.local.agent, listen, token, limits: agentServerLimits, clock: systemClock, logger };
  await assert.rejects(AgentServer.open({ ...options, certificate: null }), /0\.0\.0\.0.* only with a certificate/);
});

test("a certificate is replaced while connections are open, for clients that trust both", async () => {
  await using fixture = await openWorld();
  const next = certificateFrom(-dayMs, dayMs);
  const { container } = await started(fixture);
  const { body } = await container.invoke(requestTo("trickle", { isStreamed: true }));
  fixture.server.setCertificate(next);
  await new Promise((resolve) => body.once("data", resolve));
  body.destroy();
  await assert.rejects(fixture.connect().state(), isLost);
  const { instances } = await fixture.connect(trustIn(certificate, next)).state();
  assert.equal(instances.length, 1);
});

test("timestamps of an agent whose clock is years off are converted to the client's clock", async () => {
  const offMs = 5 * 365 * dayMs;
  const agentClock: Clock = {
    ...systemClock,
    epochMs: () => Date.now() - offMs,
    monotonicNs: () => systemClock.monotonicNs() + offMs * 1e6,
  };
  await using fixture = await openWorld({ agentClock });
  await fixture.local.putModel("a.tar.gz", "weights");
  const { client, container } = await started(fixture, "many");
  const beforeNs = systemClock.monotonicNs();
  (await container.acquire("a.tar.gz", signal()))[Symbol.dispose]();
  const near = (usedNs: number | undefined) => {
    assert.ok(
      usedNs !== undefined && usedNs > beforeNs - 60e9 && usedNs < systemClock.monotonicNs() + 60e9,
      `${usedNs}`,
    );
  };
  await eventually(() => container.view.models?.loadedModels()[0]?.pinCount === 0);
  near(container.view.models?.loadedModels()[0]?.usedNs);
  near((await client.state()).instances[0]?.containers[0]?.models[0]?.usedNs);
});

test("TCP keep-alive detects a vanished client, and its lease ends", async () => {
  await using fixture = await openWorld();
  await fixture.local.putModel("a.tar.gz", "weights");
  const { container } = await started(fixture, "many");
  using _model = await container.acquire("a.tar.gz", signal());
  assert.ok(fixture.server.address.kind === "tcp");
  const port = fixture.server.address.port.toString(16).toUpperCase().padStart(4, "0");
  // Columns of proc_net_tcp(5): local address, remote address, state (01: established), queues, timer (02: keep-alive) and its time.
  const established = readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(`:${port}`) === true && state === "01");
  assert.ok(established.length >= 2, "the events and the lease have a connection each");
  const idle = established.filter(([, , , , , timer]) => timer?.startsWith("02:") === true);
  assert.ok(idle.length >= 1, `one of ${established.length} connections has a keep-alive timer`);
  for (const [, , , , , timer] of idle) assert.ok(Number.parseInt(timer?.slice(3) ?? "", 16) <= 1000 + 100, "10 s");
});
