import assert from "node:assert/strict";
import { test } from "node:test";
import { containerModelId } from "../model-cache/index.ts";
import type {
  ContainerSlot,
  ContainerSpec,
  HostedContainer,
  HostedInstance,
  InstanceAddress,
  InstanceOwner,
  InstanceSpec,
  ModelHost,
} from "../instances/index.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

type Behaviour = "serve" | "fail" | "hang";

/** An implementation under test. The variable BEHAVIOUR controls what the containers of its specs do. */
export interface ModelHostSubject extends AsyncDisposable {
  readonly host: ModelHost;
  /**
   * Returns a spec. A `serve` container responds to GET /ping until SIGTERM: with 200 if its model has a file `answer`
   * or it has many models, else with 500. A `fail` container prints `starting` and `no such model` and exits with code
   * 3. A `hang` container ignores SIGTERM.
   */
  specFor(behaviour: Behaviour, more?: Partial<ContainerSpec>): InstanceSpec;
  /** Resolves with the status of GET /ping at the address; null if there is no response. */
  ping(address: InstanceAddress): Promise<number | null>;
  /** Stores an archive with a file `answer`. Resolves with its URL, ETag and length. */
  put(key: string): Promise<{ readonly url: string; readonly etag: string; readonly archiveBytes: number }>;
  /** Disposes the host and opens the one of the next run of the platform. */
  reopen(): Promise<ModelHost>;
  /** Kills a container with SIGKILL. */
  kill(container: HostedContainer): void;
  /** Resolves with whether processes or files of an instance remain on its node. */
  hasLeft(instanceId: string): Promise<boolean>;
}

/** Returns the slots of an instance with at least one container. */
const slotsOf = ({ slots }: HostedInstance) => slots as readonly [ContainerSlot, ...ContainerSlot[]];

const never = new AbortController().signal;

/** Registers the tests. The subject deletes its own files; disposal of a host ends its containers. */
export function modelHostContract(name: string, open: () => Promise<ModelHostSubject>): void {
  const responded = async (subject: ModelHostSubject, address: InstanceAddress, expected = 200) => {
    while ((await subject.ping(address)) !== expected) await new Promise((resolve) => setTimeout(resolve, 5));
  };

  const started = async (subject: ModelHostSubject, spec: InstanceSpec): Promise<HostedContainer> => {
    const [slot] = slotsOf(subject.host.open(spec));
    await slot.prepare(never);
    return await slot.start(never);
  };

  test(`${name}: a container serves at its address, has measured usage, and ends when stopped`, async () => {
    await using subject = await open();
    const container = await started(subject, subject.specFor("serve"));
    await responded(subject, container.address, 500);
    const usage = await container.usage();
    assert(usage !== null && usage.memoryBytes > 1e6 && usage.cpuNs > 0);
    assert(usage.diskShare >= 0 && usage.diskShare <= 1, String(usage.diskShare));
    assert(((await container.workedNs()) ?? 0) > 0);
    await container.stop(5000);
    const end = await container.ended;
    assert.deepEqual([end.exitCode, end.signal], [0, null]);
    assert.equal(await subject.ping(container.address), null);
    assert.equal(await container.usage(), null);
    assert.equal(await container.workedNs(), null);
    await container.stop(5000);
  });

  test(`${name}: the end of a container is reported with its exit status and last lines, which are also in its log`, async () => {
    await using subject = await open();
    const lines: string[] = [];
    const container = await started(subject, subject.specFor("fail", { output: (line) => lines.push(line) }));
    const end = await container.ended;
    assert.equal(end.exitCode, 3);
    assert.deepEqual(end.lastLines, ["starting", "no such model"]);
    assert.deepEqual(lines.toSorted(), ["no such model", "starting"]);
  });

  test(`${name}: a container that ignores SIGTERM is killed, and disposal leaves no container`, async () => {
    await using subject = await open();
    const container = await started(subject, subject.specFor("hang"));
    await responded(subject, container.address);
    await container.stop(50);
    assert.equal((await container.ended).signal, "SIGKILL");
    const other = await started(subject, subject.specFor("hang"));
    await responded(subject, other.address);
    await subject.host[Symbol.asyncDispose]();
    assert.equal((await other.ended).signal, "SIGKILL");
  });

  test(`${name}: a start with an aborted signal starts nothing`, async () => {
    await using subject = await open();
    const [slot] = slotsOf(subject.host.open(subject.specFor("serve")));
    await slot.prepare(never);
    await assert.rejects(slot.start(AbortSignal.abort(new Error("too late"))), /too late/);
  });

  test(`${name}: an instance of one model has its files before the container starts, and disposal removes them`, async () => {
    await using subject = await open();
    const { url } = await subject.put("one.tar.gz");
    const models = { kind: "one", container: { ModelDataUrl: url }, bringMsMax: testTimeoutMs } as const;
    const spec = subject.specFor("serve", { models });
    const instance = subject.host.open(spec);
    const [slot] = slotsOf(instance);
    assert.equal(slot.trees, null);
    await slot.prepare(never);
    for (let start = 0; start < 2; start++) {
      const container = await slot.start(never);
      await responded(subject, container.address);
      await container.stop(5000);
    }
    assert.equal(await subject.hasLeft(spec.instanceId), true);
    await instance[Symbol.asyncDispose]();
    assert.equal(await subject.hasLeft(spec.instanceId), false);
  });

  test(`${name}: a model that cannot be downloaded is reported in SageMaker's words, and can be downloaded once it exists`, async () => {
    await using subject = await open();
    const { url } = await subject.put("one.tar.gz");
    const container = { ModelDataUrl: `${url}.late` };
    const models = { kind: "one", container, bringMsMax: testTimeoutMs } as const;
    const instance = subject.host.open(subject.specFor("serve", { models }));
    const [slot] = slotsOf(instance);
    await assert.rejects(slot.prepare(never), {
      name: "ModelDataError",
      message: /^Failed to download model data for container "container_1" from URL: "/,
    });
    await subject.put("one.tar.gz.late");
    await slot.prepare(never);
    await instance[Symbol.asyncDispose]();
  });

  const owner: InstanceOwner = { endpointName: "e", fleetKey: "1 v", ordinal: 1 };

  test(`${name}: the next run finds the unpacked models of a multi-model instance by its owner, once`, async () => {
    await using subject = await open();
    const { url, etag, archiveBytes } = await subject.put("many/a.tar.gz");
    const models = { kind: "many", modelDataUrl: url.slice(0, -"a.tar.gz".length) } as const;
    const first = { ...subject.specFor("serve", { models }), owner };
    const instance = subject.host.open(first);
    const [slot] = slotsOf(instance);
    await slot.prepare(never);
    const { trees } = slot;
    assert.ok(trees !== null);
    assert.deepEqual(await trees.adopt(), []);
    const model = { id: containerModelId("a.tar.gz", etag), target: "a.tar.gz", etag, archiveBytes };
    assert.ok((await trees.unpack(model, { signal: never, onProgress: () => {} })) !== null);
    await instance.shutDown();

    const host = await subject.reopen();
    await host.resume([owner]);
    assert.equal(host.claim({ ...owner, fleetKey: "1 other" }), null);
    assert.equal(host.claim({ ...owner, ordinal: 0 }), null);
    assert.deepEqual(host.claim(owner), { id: first.instanceId, node: first.node });
    assert.equal(host.claim(owner), null);
    const [next] = slotsOf(host.open(first));
    assert.equal(await next.adopt(never), null);
    await next.prepare(never);
    assert.deepEqual(
      (await next.trees?.adopt())?.map(({ target }) => target),
      ["a.tar.gz"],
    );
  });

  test(`${name}: models of another slot are not kept`, async () => {
    await using subject = await open();
    const { url, etag, archiveBytes } = await subject.put("many/a.tar.gz");
    const models = { kind: "many", modelDataUrl: url.slice(0, -"a.tar.gz".length) } as const;
    const first = { ...subject.specFor("serve", { models }), owner };
    const [slot] = slotsOf(subject.host.open(first));
    await slot.prepare(never);
    const model = { id: containerModelId("a.tar.gz", etag), target: "a.tar.gz", etag, archiveBytes };
    await slot.trees?.unpack(model, { signal: never, onProgress: () => {} });
    const host = await subject.reopen();
    await host.resume([owner]);
    const [container] = first.containers;
    const moved = { ...container, models: { kind: "many", modelDataUrl: "s3://models/elsewhere/" } } as const;
    const [next] = slotsOf(host.open({ ...first, containers: [moved] }));
    assert.equal(await next.adopt(never), null);
    await next.prepare(never);
    assert.deepEqual(await next.trees?.adopt(), []);
  });

  test(`${name}: instances of a previous run without a desired owner are ended and removed`, async () => {
    await using subject = await open();
    const spec = { ...subject.specFor("serve"), owner };
    const container = await started(subject, spec);
    await responded(subject, container.address, 500);
    subject.host.detach();
    const host = await subject.reopen();
    assert.equal(await subject.ping(container.address), 500);
    assert.equal(await subject.hasLeft(spec.instanceId), true);
    await host.resume([{ ...owner, ordinal: 0 }]);
    assert.equal(await subject.ping(container.address), null);
    assert.equal(await subject.hasLeft(spec.instanceId), false);
  });

  test(`${name}: a detached container keeps running, and the next run adopts it`, async () => {
    await using subject = await open();
    const { url } = await subject.put("one.tar.gz");
    const models = { kind: "one", container: { ModelDataUrl: url }, bringMsMax: testTimeoutMs } as const;
    const lines: string[] = [];
    const spec = { ...subject.specFor("serve", { models, output: (line) => lines.push(line) }), owner };
    const before = subject.host.open(spec);
    const [slot] = slotsOf(before);
    assert.equal(await slot.adopt(never), null);
    await slot.prepare(never);
    const container = await slot.start(never);
    await responded(subject, container.address);
    subject.host.detach();
    await container.stop(0);
    await before.shutDown();
    const host = await subject.reopen();
    await host.resume([owner]);
    assert.deepEqual(host.claim(owner), { id: spec.instanceId, node: spec.node });
    const [next] = slotsOf(host.open(spec));
    const adopted = await next.adopt(never);
    assert.ok(adopted !== null);
    assert.deepEqual(adopted.address, container.address);
    await responded(subject, adopted.address);
    assert.ok(((await adopted.workedNs()) ?? 0) > 0 && (await adopted.usage()) !== null);
    subject.kill(adopted);
    await adopted.ended;
    assert.equal(await subject.ping(adopted.address), null);
    const again = await next.start(never);
    await responded(subject, again.address);
    await again.stop(5000);
  });

  test(`${name}: a container started with another spec is ended and not adopted, and an ended one is not adopted`, async () => {
    await using subject = await open();
    const spec = { ...subject.specFor("serve"), owner };
    const container = await started(subject, spec);
    await responded(subject, container.address, 500);
    subject.host.detach();
    const second = await subject.reopen();
    await second.resume([owner]);
    const [own] = spec.containers;
    const changed = { ...own, environment: { ...own.environment, MORE: "1" } };
    const [other] = slotsOf(second.open({ ...spec, containers: [changed] }));
    assert.equal(await other.adopt(never), null);
    assert.equal(await subject.ping(container.address), null);
    const [same] = slotsOf(second.open(spec));
    assert.equal(await same.adopt(never), null);
  });

  test(`${name}: each container of an instance has its own slot and address, and ends alone`, async () => {
    await using subject = await open();
    const { url } = await subject.put("second.tar.gz");
    const [first] = subject.specFor("serve").containers;
    const models = { kind: "one", container: { ModelDataUrl: url }, bringMsMax: testTimeoutMs } as const;
    const spec = subject.specFor("serve", { models });
    const instance = subject.host.open({ ...spec, containers: [first, ...spec.containers] });
    assert.equal(instance.slots.length, 2);
    for (const slot of instance.slots) await slot.prepare(never);
    const [one, two] = await Promise.all(slotsOf(instance).map((slot) => slot.start(never)));
    assert.ok(one !== undefined && two !== undefined);
    // Only the model of the second container contains a file `answer`.
    await responded(subject, one.address, 500);
    await responded(subject, two.address, 200);
    await one.stop(5000);
    assert.equal(await subject.ping(one.address), null);
    assert.equal(await subject.ping(two.address), 200);
    await two.stop(5000);
    await instance[Symbol.asyncDispose]();
    assert.equal(await subject.hasLeft(spec.instanceId), false);
  });

  test(`${name}: the error for a model that cannot be downloaded names an unnamed container by its position`, async () => {
    await using subject = await open();
    const { url } = await subject.put("one.tar.gz");
    const models = { kind: "one", container: { ModelDataUrl: `${url}.absent` }, bringMsMax: testTimeoutMs } as const;
    const spec = subject.specFor("serve", { models });
    const named = { ...models, container: { ...models.container, ContainerHostname: "third" } };
    const [own] = spec.containers;
    const instance = subject.host.open({ ...spec, containers: [own, own, { ...own, models: named }] });
    for (const [index, text] of ["container_1", "container_2", "third"].entries()) {
      await assert.rejects(instance.slots[index]?.prepare(never) ?? Promise.resolve(), {
        message: new RegExp(`^Failed to download model data for container "${text}" from URL: "`),
      });
    }
    await instance[Symbol.asyncDispose]();
  });
}
