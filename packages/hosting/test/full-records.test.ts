/**
 * Writes of records fail on a full disk during transitions of endpoints and components. The transitions continue
 * afterwards.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import type { DocumentChange } from "../src/records/index.ts";
import { componentSettled, createComponent, deployShared, spec } from "./components-fixture.ts";
import { owner } from "./hosting-fixture.ts";
import { TrafficFixture, until } from "./traffic-fixture.ts";

/** Documents that fail the next write with a change for which `failing` returns true. */
class FullMemory extends DocumentMemory {
  failing: ((change: DocumentChange) => boolean) | null = null;

  override write(changes: readonly DocumentChange[]): number {
    if (this.failing === null || !changes.some(this.failing)) return super.write(changes);
    this.failing = null;
    throw Object.assign(new Error("no space left"), { code: "ENOSPC", syscall: "write" });
  }
}

test("an endpoint comes into service and is deleted although the disk is full at the moment of the record", async () => {
  const documents = new FullMemory();
  await using bench = await TrafficFixture.open(documents);
  documents.failing = (change) => change.do === "put" && change.body.includes('"at":"InService"');
  await bench.deploy("e", [{ name: "v" }]);
  await bench.settled("e");
  assert.deepEqual(await bench.status("e"), ["InService", "e", null]);
  assert.equal(documents.failing, null);
  documents.failing = (change) => change.do === "delete" && change.kind === "endpoint";
  await bench.hosting.endpoints.delete("e", owner);
  await until("it is gone", async () =>
    bench.hosting.endpoints.find("e", owner).then(
      () => false,
      () => true,
    ),
  );
  assert.equal(documents.failing, null);
});

test("an inference component comes into service and is deleted although the disk is full at the moment of the record", async () => {
  const documents = new FullMemory();
  await using bench = await TrafficFixture.open(documents);
  await deployShared(bench, "shared");
  const isOf = (change: DocumentChange) => change.do !== "check" && change.kind === "inference-component";
  documents.failing = (change) => isOf(change) && change.do === "put" && change.body.includes('"at":"InService"');
  await createComponent(bench, "shared", "c", spec("c"));
  await componentSettled(bench, "c");
  assert.equal((await bench.hosting.components.find("c", owner)).state.at, "InService");
  assert.equal(documents.failing, null);
  assert.equal((await bench.call("shared", "x", null, "c")).container, "c");
  documents.failing = (change) => isOf(change) && change.do === "delete";
  await bench.hosting.components.delete("c", owner);
  await componentSettled(bench, "c");
  await until("its copies have ended", () => bench.running().length === 0);
  assert.equal(documents.failing, null);
});

test("an endpoint whose instance key cannot be recorded fails with the reason and leaves no process", async () => {
  const documents = new FullMemory();
  await using bench = await TrafficFixture.open(documents);
  documents.failing = (change) => change.do === "put" && change.kind === "instance-key";
  await bench.deploy("e", [{ name: "v" }]);
  await bench.settled("e");
  assert.deepEqual(await bench.status("e"), [
    "Failed",
    "e",
    "Production variant v could not be started: the instance's access key cannot be recorded: " +
      "the disk that holds the platform's records is full",
  ]);
  assert.deepEqual(bench.running(), []);
});

test("an instance has one recorded key while it exists, and a start removes keys that a killed platform left", async () => {
  const documents = new DocumentMemory();
  const left = { kind: "instance-key", key: "i-1/primary", expects: "absent" } as const;
  documents.write([
    { do: "put", ...left, body: JSON.stringify({ accessKeyId: "GALI1", identity: { instanceId: "i-1" } }) },
  ]);
  const keys = () => [...documents.held.values()].filter(({ kind }) => kind === "instance-key").map(({ key }) => key);
  await using bench = await TrafficFixture.open(documents);
  assert.deepEqual(keys(), []);
  await bench.deploy("e", [{ name: "v" }]);
  await bench.settled("e");
  const { instance } = await bench.call("e", "x");
  assert.deepEqual(keys(), [`${instance.replace(".sock", "")}/primary`]);
  await bench.hosting.endpoints.delete("e", owner);
  await until("its key is removed", () => keys().length === 0);
});
