import assert from "node:assert/strict";
import { buffer, text } from "node:stream/consumers";
import { Readable } from "node:stream";
import { test } from "node:test";
import { eventually, testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import {
  ContainerConnectionLost,
  ContainerTimeout,
  InstanceFailure,
  ModelLoadError,
  ModelMissingError,
  RequestNotSent,
  ResponseRejected,
  type AgentContainer,
  type AgentInstance,
  type AgentInstanceSpec,
  type AgentRequest,
  type InstanceAgent,
  type InstanceEvent,
} from "../instance-agent/index.ts";

/** An implementation under test. The variable BEHAVIOUR and the request header `do` control what its containers do. */
export interface InstanceAgentSubject extends AsyncDisposable {
  readonly agent: InstanceAgent;
  /** Opens another client of the agent. Returns the same agent if the implementation has no clients. */
  connect(): Promise<InstanceAgent>;
  /**
   * Returns a spec. A `fail` container prints `no such model` and exits; a `sick` one is never healthy. With the kind
   * `many`, models come from `putModel`.
   */
  specFor(behaviour: "serve" | "fail" | "sick", kind?: "one" | "many"): AgentInstanceSpec;
  /** Replaces the agent by its next run, which keeps the instances that have an owner running. */
  next(): Promise<InstanceAgent>;
  /** Stores a model archive; `text: null` stores one that cannot be unpacked. */
  putModel(target: string, text: string | null): Promise<void>;
}

const signal = () => AbortSignal.timeout(testTimeoutMs);

/** An instance that records its events. */
class Watched {
  readonly events: InstanceEvent[] = [];
  readonly instance: AgentInstance;
  constructor(agent: InstanceAgent, spec: AgentInstanceSpec) {
    this.instance = agent.instance(spec, (event) => this.events.push(event));
  }

  get container(): AgentContainer {
    const [container] = this.instance.containers;
    assert.ok(container !== undefined);
    return container;
  }

  get lines(): readonly string[] {
    return this.events.flatMap((event) => (event.kind === "line" ? [event.text] : []));
  }

  async started(): Promise<this> {
    assert.equal(await this.instance.put("delete"), false);
    await this.instance.view.started(signal());
    return this;
  }
}

const asked = (what: string | null, more: Partial<AgentRequest> = {}): AgentRequest => ({
  headers: { "content-type": "text/x", ...(what === null ? {} : { do: what }) },
  body: Buffer.from("question"),
  isStreamed: false,
  mayGoElsewhere: false,
  signal: signal(),
  ...more,
});

/** Registers the tests. The subject ends every instance that a test leaves running. */
export function instanceAgentContract(name: string, open: (eventsMax?: number) => Promise<InstanceAgentSubject>): void {
  test(`${name}: an instance is put, put again, listed as it was put, measured, and deleted once`, async () => {
    await using subject = await open();
    const { agent } = subject;
    const spec = subject.specFor("serve");
    const watched = await new Watched(agent, spec).started();
    const { instance } = watched;
    assert.equal(instance.view.isInService, true);
    assert.equal(await instance.put("delete"), true);
    assert.equal(instance.view.isInService, true);
    const { instances, node } = await agent.state();
    assert.deepEqual(
      instances.map(({ spec: put, containers }) => ({ put, at: containers.map(({ health }) => health.at) })),
      [{ put: spec, at: ["in-service"] }],
    );
    assert.ok(node.capacity.memoryBytes > 0);
    const [usage] = await instance.usages();
    assert.ok(usage?.[0] === "primary" && (usage[1]?.memoryBytes ?? 0) > 1e6);
    assert.equal(await watched.container.executionParameters(signal()), "two at once");
    assert.equal(await instance.delete(), true);
    assert.equal(await instance.delete(), false);
    await eventually(() => watched.events.at(-1)?.kind === "ended");
    assert.equal(instance.view.isInService, false);
    assert.deepEqual((await agent.state()).instances, []);
    await assert.rejects(watched.container.view.ready(signal()), InstanceFailure);
  });

  test(`${name}: bodies of any length stream to the container and back, with its status and headers`, async () => {
    await using subject = await open();
    const { container } = await new Watched(subject.agent, subject.specFor("serve")).started();
    const chunks = Array.from({ length: 80 }, (_, index) => Buffer.alloc(64 * 1024, index));
    const reply = await container.invoke(asked(null, { body: Readable.from(chunks), containerPath: "/v1/chat" }));
    assert.deepEqual(
      [reply.status, reply.headers["content-type"], reply.headers["x-path"]],
      [200, "text/x", "/v1/chat"],
    );
    assert.deepEqual(await buffer(reply.body), Buffer.concat(chunks));
    const refused = await container.invoke(asked("refuse"));
    assert.deepEqual([refused.status, refused.headers["x-why"], await text(refused.body)], [418, "tea", "a teapot"]);
    const gather = { headers: {}, body: Buffer.from("all of it"), signal: signal() };
    const complete = await container.invokeBuffered({ ...gather, admit: () => {} });
    assert.deepEqual([complete.status, complete.body.toString()], [200, "all of it"]);
    const admit = () => {
      throw new ResponseRejected("too long for me");
    };
    await assert.rejects(container.invokeBuffered({ ...gather, admit }), ResponseRejected);
    assert.equal(container.view.health.isUnhealthy, false);
  });

  test(`${name}: a caller that aborts cancels its request in the container, before and during the response`, async () => {
    await using subject = await open();
    const watched = await new Watched(subject.agent, subject.specFor("serve")).started();
    const disconnect = new AbortController();
    const pending = watched.container.invoke(asked("hold", { signal: disconnect.signal }));
    await eventually(() => watched.lines.includes("held"));
    disconnect.abort(new Error("no longer needed"));
    await assert.rejects(pending, /no longer needed/);
    const { body } = await watched.container.invoke(asked("trickle", { isStreamed: true }));
    await new Promise((resolve) => body.once("data", resolve));
    body.destroy();
    await eventually(() => watched.lines.includes("the caller disconnected"));
  });

  test(`${name}: the end of a container is reported to its request; later requests get its successor`, async () => {
    await using subject = await open();
    const watched = await new Watched(subject.agent, subject.specFor("serve")).started();
    await assert.rejects(watched.container.invoke(asked("die")), ContainerConnectionLost);
    // The container is unhealthy or has exited. A request that another instance could process is not sent to it.
    await assert.rejects(watched.container.invoke(asked(null, { mayGoElsewhere: true })), RequestNotSent);
    const reply = await watched.container.invoke(asked(null));
    assert.equal(await text(reply.body), "question");
    await eventually(() => watched.instance.view.isInService);
    const health = watched.events.flatMap((event) => (event.kind === "health" ? [event.health] : []));
    assert.ok(health.some(({ isUnhealthy }) => isUnhealthy));
    assert.ok(health.some(({ at, failure }) => at === "waiting" && /exited with code 1/.test(failure)));
  });

  test(`${name}: an instance whose first start fails is deleted and its error has the container's last lines; one put with retry remains`, async () => {
    await using subject = await open();
    const failing = new Watched(subject.agent, subject.specFor("fail"));
    await failing.instance.put("delete");
    await assert.rejects(failing.instance.view.started(signal()), (error: InstanceFailure) => {
      assert.ok(error instanceof InstanceFailure);
      assert.deepEqual([error.containerName, error.lastLines], ["primary", ["no such model"]]);
      return true;
    });
    assert.equal(await failing.instance.delete(), false);
    const retried = new Watched(subject.agent, subject.specFor("fail"));
    await retried.instance.put("retry");
    await eventually(() => retried.container.view.health.isFailing);
    assert.deepEqual(retried.container.view.health.lastLines, ["no such model"]);
    await assert.rejects(retried.container.view.ready(signal()), InstanceFailure);
    assert.equal(await retried.instance.delete(), true);
  });

  test(`${name}: an instance is deleted while it starts, and can be put again at once`, async () => {
    await using subject = await open();
    const spec = subject.specFor("sick");
    const first = new Watched(subject.agent, spec);
    await first.instance.put("delete");
    const started = assert.rejects(first.instance.view.started(signal()), /was deleted/);
    const deleted = first.instance.delete();
    const again = first.instance.delete();
    const second = new Watched(subject.agent, { ...spec, containers: subject.specFor("serve").containers });
    // The new instance is put only after all resources of the old one have been released.
    assert.equal(await deleted, true);
    await again;
    await started;
    await second.started();
    assert.equal(await text((await second.container.invoke(asked(null))).body), "question");
  });

  test(`${name}: a request that was not sent reports why its container does not come back in time`, async () => {
    await using subject = await open();
    const spec = { ...subject.specFor("serve"), restartWaitMsMax: 50 };
    const { container } = await new Watched(subject.agent, spec).started();
    const reply = await container.invoke(asked("vanish"));
    assert.equal(await text(reply.body), "");
    await assert.rejects(container.invoke(asked(null)), ContainerTimeout);
  });

  test(`${name}: a model's own empty 404 is passed on, and the model computes once`, async () => {
    await using subject = await open();
    await subject.putModel("a.tar.gz", "weights");
    const watched = await new Watched(subject.agent, subject.specFor("serve", "many")).started();
    using model = await watched.container.acquire("a.tar.gz", signal());
    const reply = await model.invoke(asked("absent"));
    assert.deepEqual([reply.status, await text(reply.body)], [404, ""]);
    assert.equal(await text((await model.invoke(asked("print"))).body), "printed");
    await eventually(() => watched.lines.some((line) => line.startsWith("line 199 ")));
    assert.deepEqual(
      watched.lines.filter((line) => line === "ran"),
      ["ran"],
    );
  });

  test(`${name}: a lost model is loaded again after a request that cannot be sent twice`, async () => {
    await using subject = await open();
    await subject.putModel("a.tar.gz", "weights");
    const watched = await new Watched(subject.agent, subject.specFor("serve", "many")).started();
    using model = await watched.container.acquire("a.tar.gz", signal());
    await text((await model.invoke(asked("forget"))).body);
    const lost = await model.invoke(asked(null, { body: Readable.from([Buffer.from("once")]) }));
    assert.deepEqual([lost.status, await text(lost.body)], [404, ""]);
    using again = await watched.container.acquire("a.tar.gz", signal());
    assert.equal(again.cacheHit, false);
    assert.equal(await text((await again.invoke(asked(null))).body), "question");
  });

  test(`${name}: a model is loaded, pinned, reused, loaded again after its container lost it, and released`, async () => {
    await using subject = await open();
    await subject.putModel("a.tar.gz", "weights");
    const watched = await new Watched(subject.agent, subject.specFor("serve", "many")).started();
    const { container } = watched;
    const models = () => {
      assert.ok(container.view.models !== null);
      return container.view.models;
    };
    const pins = () =>
      models()
        .loadedModels()
        .map(({ pinCount }) => pinCount);
    assert.equal(models().copyOf("a.tar.gz"), "absent");
    const loading = container.acquire("a.tar.gz", signal());
    assert.equal(models().copyOf("a.tar.gz"), "coming");
    {
      using model = await loading;
      assert.equal(model.cacheHit, false);
      await eventually(() => pins()[0] === 1);
      assert.equal(models().copyOf("a.tar.gz"), "loaded");
      // The memory that the container measured replaces the reservation.
      await eventually(() => models().memoryBytesOf("a.tar.gz") === 1_000_000);
      assert.equal(models().loadedCount, 1);
      assert.equal(await text((await model.invoke(asked("forget"))).body), "undefined");
      const reply = await model.invoke(asked(null, { containerPath: "/invoke" }));
      assert.deepEqual([reply.status, await text(reply.body)], [200, "question"]);
      using other = await container.acquire("a.tar.gz", signal());
      assert.equal(other.cacheHit, true);
      await eventually(() => pins()[0] === 3);
    }
    await eventually(() => pins()[0] === 0);
    assert.ok(models().hasMemoryFor(1000, 0));
    const [loaded] = models().loadedModels();
    container.release(loaded?.id ?? "");
    await eventually(() => models().copyOf("a.tar.gz") === "absent");
    await eventually(() => watched.events.some((event) => event.kind === "model-timed" && event.what === "unloaded"));
  });

  test(`${name}: requests that arrive while an instance of the previous run is adopted do not load its model again`, async () => {
    await using subject = await open();
    await subject.putModel("a.tar.gz", "weights");
    const owner = { endpointName: "e", fleetKey: "1 v", ordinal: 0 };
    const spec = { ...subject.specFor("serve", "many"), owner };
    const former = await new Watched(subject.agent, spec).started();
    (await former.container.acquire("a.tar.gz", signal()))[Symbol.dispose]();
    await eventually(() => former.lines.some((line) => line.startsWith("loads ")));
    const watched = new Watched(await subject.next(), spec);
    assert.equal(await watched.instance.put("retry"), false);
    const acquired = Array.from({ length: 8 }, () => watched.container.acquire("a.tar.gz", signal()));
    for (const model of await Promise.all(acquired)) {
      assert.equal(model.cacheHit, true);
      assert.equal(await text((await model.invoke(asked(null))).body), "question");
      model[Symbol.dispose]();
    }
    assert.deepEqual(watched.lines, []);
  });

  test(`${name}: a missing, damaged or replaced model is reported with that reason`, async () => {
    await using subject = await open();
    await subject.putModel("a.tar.gz", "one");
    await subject.putModel("bad.tar.gz", null);
    const watched = await new Watched(subject.agent, subject.specFor("serve", "many")).started();
    const { container } = watched;
    await assert.rejects(container.acquire("none.tar.gz", signal()), (error: ModelMissingError) => {
      assert.ok(error instanceof ModelMissingError);
      assert.equal(error.target, "none.tar.gz");
      return true;
    });
    await assert.rejects(container.acquire("bad.tar.gz", signal()), (error: ModelLoadError) => {
      assert.ok(error instanceof ModelLoadError);
      assert.equal(error.status, 400);
      return true;
    });
    (await container.acquire("a.tar.gz", signal()))[Symbol.dispose]();
    await subject.putModel("a.tar.gz", "another");
    container.recheck("a.tar.gz");
    await eventually(() => container.view.models?.loadedCount === 0);
    (await container.acquire("a.tar.gz", signal()))[Symbol.dispose]();
    await subject.putModel("a.tar.gz", "a third");
    (await container.acquire("a.tar.gz", signal()))[Symbol.dispose]();
    await eventually(() => watched.events.some(({ kind }) => kind === "outdated"));
  });

  test(`${name}: two clients of one instance see the same state, and each sees the other's deletion`, async () => {
    await using subject = await open();
    await subject.putModel("a.tar.gz", "weights");
    const spec = subject.specFor("serve", "many");
    const one = await new Watched(subject.agent, spec).started();
    const other = new Watched(await subject.connect(), spec);
    assert.equal(await other.instance.attach(), true);
    assert.equal(other.instance.view.isInService, true);
    const model = await one.container.acquire("a.tar.gz", signal());
    await eventually(() => other.container.view.models?.loadedModels()[0]?.pinCount === 1);
    model[Symbol.dispose]();
    await eventually(() => other.container.view.models?.loadedModels()[0]?.pinCount === 0);
    assert.equal(await other.instance.put("retry"), true);
    assert.equal(await other.instance.delete(), true);
    await eventually(() => one.events.at(-1)?.kind === "ended");
    assert.equal(await one.instance.attach(), false);
  });

  test(`${name}: an event reader resumes after its last event; a lost event replaces events that were dropped meanwhile`, async () => {
    await using subject = await open(64);
    const { agent } = subject;
    const reading = new AbortController();
    const { seq } = await agent.state();
    const first = agent.events({ after: seq, signal: reading.signal }).next();
    const watched = await new Watched(agent, subject.specFor("serve")).started();
    const { value } = await first;
    assert.ok(value?.kind === "health" && value.instanceId === watched.instance.id);
    const resumed = await agent.events({ after: value.seq, signal: reading.signal }).next();
    assert.equal(resumed.value?.seq, value.seq + 1);
    // The container prints two hundred lines without a reader. The agent keeps the last sixty-four events.
    assert.equal(await text((await watched.container.invoke(asked("print"))).body), "printed");
    await eventually(async () => (await agent.state()).seq >= value.seq + 200);
    const late = agent.events({ after: value.seq, signal: reading.signal });
    const lost = (await late.next()).value;
    assert.equal(lost?.kind, "lost");
    assert.ok(lost.seq >= (await agent.state()).seq - 64);
    await watched.instance.delete();
    const kinds: string[] = [];
    for await (const event of late) {
      kinds.push(event.kind);
      if (event.kind === "ended") break;
    }
    assert.ok(kinds.includes("health"));
    const waiting = agent.events({ signal: reading.signal }).next();
    reading.abort(new Error("read enough"));
    await assert.rejects(waiting, /read enough/);
  });
}
