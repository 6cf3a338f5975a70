import assert from "node:assert/strict";
import { test } from "node:test";
import type { InstanceAddress, InstanceSpec, ModelHost } from "../instances/index.ts";

/** What the suite asks of an implementer: a host, and a spec whose container does as the variable BEHAVIOUR says. */
export interface ModelHostSubject {
  readonly host: ModelHost;
  /** "serve": answers /ping at its address until SIGTERM. "fail": prints `starting` and `no such model`, exits 3. "hang": ignores SIGTERM. */
  specFor(behaviour: "serve" | "fail" | "hang", output: (line: string) => void): InstanceSpec;
  /** GET /ping at the instance's address: the status, null when nothing answers. */
  ping(address: InstanceAddress): Promise<number | null>;
}

const never = new AbortController().signal;

export function modelHostContract(name: string, open: () => Promise<ModelHostSubject>): void {
  const answered = async (subject: ModelHostSubject, address: InstanceAddress) => {
    while ((await subject.ping(address)) !== 200) await new Promise((resolve) => setTimeout(resolve, 5));
  };

  test(`${name}: a container answers at its address, is measured, and ends when stopped`, async () => {
    const subject = await open();
    const instance = await subject.host.start(
      subject.specFor("serve", () => {}),
      never,
    );
    await answered(subject, instance.address);
    const usage = await instance.usage();
    assert(usage !== null && usage.memoryBytes > 1e6 && usage.cpuNs > 0);
    assert(((await instance.workedNs()) ?? 0) > 0);
    await instance.stop(5000);
    const end = await instance.ended;
    assert.deepEqual([end.exitCode, end.signal], [0, null]);
    assert.equal(await subject.ping(instance.address), null);
    assert.equal(await instance.usage(), null);
    assert.equal(await instance.workedNs(), null);
    await instance.stop(5000);
    await subject.host[Symbol.asyncDispose]();
  });

  test(`${name}: a container that ends says how, with its last lines, which also went to its log`, async () => {
    const subject = await open();
    const lines: string[] = [];
    const instance = await subject.host.start(
      subject.specFor("fail", (line) => lines.push(line)),
      never,
    );
    const end = await instance.ended;
    assert.equal(end.exitCode, 3);
    assert.deepEqual(end.lastLines, ["starting", "no such model"]);
    assert.deepEqual(lines.toSorted(), ["no such model", "starting"]);
    await subject.host[Symbol.asyncDispose]();
  });

  test(`${name}: a container that ignores the request to end is ended by force, and disposal leaves none`, async () => {
    const subject = await open();
    const instance = await subject.host.start(
      subject.specFor("hang", () => {}),
      never,
    );
    await answered(subject, instance.address);
    await instance.stop(50);
    assert.equal((await instance.ended).signal, "SIGKILL");
    const other = await subject.host.start(
      subject.specFor("hang", () => {}),
      never,
    );
    await answered(subject, other.address);
    await subject.host[Symbol.asyncDispose]();
    assert.equal((await other.ended).signal, "SIGKILL");
  });

  test(`${name}: starting with a signal that is aborted starts nothing`, async () => {
    const subject = await open();
    const spec = subject.specFor("serve", () => {});
    await assert.rejects(subject.host.start(spec, AbortSignal.abort(new Error("too late"))), /too late/);
    await subject.host[Symbol.asyncDispose]();
  });
}
