/** Tests of the records that hosting's operations write, with documents in memory and without files or containers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget, createLogger, rejectOnAbort, silentLogger, systemClock } from "@galatea/base";
import { DocumentMemory, MemoryDocuments } from "../src/records/contracts/index.ts";
import type { ChangeBatch, Documents } from "../src/records/index.ts";
import { Hosting, type HostingOptions } from "../src/hosting.ts";
import { nodeWith } from "../src/nodes/node-fixture.ts";
import { hostingLimits, type HostingLimits } from "../src/capacity/reservations.ts";

const owner = { accountId: "000000000000", region: "us-east-1" };
const nextTick = () => new Promise((resolve) => setImmediate(resolve));

async function open(
  documents: Documents,
  limits: Partial<HostingLimits> = {},
  logger = silentLogger,
): Promise<Hosting> {
  return await Hosting.open({
    documents,
    limits: { ...hostingLimits, ...limits },
    nodes: [nodeWith()],
    random: Math.random,
    alarmState: () => null,
    // The test starts no instance.
    fleet: {
      host: {},
      clock: systemClock,
      logger,
      requestMemory: new ByteBudget(2 ** 20),
    } as unknown as HostingOptions["fleet"],
  });
}

const modelOf = (name: string, url = `s3://models/${name}.tar.gz`, tags: { Key: string; Value: string }[] = []) => ({
  name,
  owner,
  containers: [{ ModelDataUrl: url }] as const,
  executionMode: "Serial" as const,
  request: {},
  tags,
});

test("only one of two concurrent CreateModel calls with one name succeeds", async () => {
  await using hosting = await open(new MemoryDocuments());
  const outcomes = await Promise.allSettled([
    hosting.catalog.createModel(modelOf("m")),
    hosting.catalog.createModel(modelOf("M")),
  ]);
  assert.deepEqual(outcomes.map(({ status }) => status).toSorted(), ["fulfilled", "rejected"]);
  const [refused] = outcomes.filter((outcome) => outcome.status === "rejected");
  assert.match(String(refused?.reason), /Cannot create already existing model "arn:aws:sagemaker:.*:model\/m"/);
});

test("concurrent CreateModel calls do not exceed the limit, and a deletion allows one more", async () => {
  await using hosting = await open(new MemoryDocuments(), { modelsMax: 3 });
  const names = ["a", "b", "c", "d", "e"];
  const outcomes = await Promise.allSettled(names.map((name) => hosting.catalog.createModel(modelOf(name))));
  assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 3);
  const refused = outcomes.filter((outcome) => outcome.status === "rejected");
  assert.ok(refused.every(({ reason }) => reason.code === "ResourceLimitExceeded"));
  await hosting.catalog.deleteModel("b", owner);
  await hosting.catalog.createModel(modelOf("d"));
  await assert.rejects(hosting.catalog.createModel(modelOf("e")), /current utilization of 3 Models/);
});

test("a model and its tags are recorded together or not at all, and are deleted together", async () => {
  await using hosting = await open(new MemoryDocuments());
  const tags = Array.from({ length: 51 }, (_, index) => ({ Key: `k${index}`, Value: "v" }));
  await assert.rejects(hosting.catalog.createModel(modelOf("m", "s3://b/m", tags)), /cannot have more than 50 tags/);
  await assert.rejects(hosting.catalog.model("m", owner), /Could not find model/);
  const { arn } = await hosting.catalog.createModel(modelOf("m", "s3://b/m", tags.slice(0, 2)));
  assert.deepEqual(await hosting.catalog.tags(arn), tags.slice(0, 2));
  const added = [
    { Key: "k0", Value: "new" },
    { Key: "x", Value: "y" },
  ];
  const expected = [added[0], tags[1], added[1]];
  assert.deepEqual(await hosting.catalog.addTags(arn, added), expected);
  await hosting.catalog.removeTags(arn, new Set(["k1", "absent"]));
  assert.deepEqual(await hosting.catalog.tags(arn), added);
  await hosting.catalog.deleteModel("m", owner);
  await assert.rejects(hosting.catalog.addTags(arn, added), /Could not find model/);
  await hosting.catalog.createModel(modelOf("m"));
  assert.deepEqual(await hosting.catalog.tags(arn), []);
});

test("tags that are added concurrently are all kept", async () => {
  await using hosting = await open(new MemoryDocuments());
  const { arn } = await hosting.catalog.createModel(modelOf("m"));
  const keys = Array.from({ length: 8 }, (_, index) => `k${index}`);
  await Promise.all(keys.map((Key) => hosting.catalog.addTags(arn, [{ Key, Value: "v" }])));
  assert.deepEqual((await hosting.catalog.tags(arn)).map(({ Key }) => Key).toSorted(), keys);
});

test("an unreadable record is logged once, is not served, and can be replaced by a new one", async () => {
  const documents = new MemoryDocuments();
  await documents.write([{ do: "put", kind: "model", key: "torn", body: '{"na', expects: "any" }]);
  const reported: string[] = [];
  const logger = createLogger((_, message, fields) => reported.push(`${message} ${String(fields?.["key"])}`));
  await using hosting = await open(documents, {}, logger);
  await assert.rejects(hosting.catalog.model("torn", owner), /Could not find model/);
  assert.deepEqual(reported, ["damaged record skipped; it stays on disk torn"]);
  await hosting.catalog.createModel(modelOf("torn"));
  assert.equal((await hosting.catalog.model("torn", owner)).name, "torn");
});

for (const [what, deletionsMax] of [
  ["tell of", 1000],
  ["have forgotten", 1],
] as const) {
  test(`a change by another process is visible once the records ${what} it`, async () => {
    const memory = new DocumentMemory();
    const options = { deletionsMax, batchMax: 1 };
    const documents = new MemoryDocuments(memory, options);
    await using mine = await open(documents);
    await using other = await open(documents);
    for (const name of ["a", "b", "c", "d"]) await other.catalog.createModel(modelOf(name));
    for (const name of ["a", "b", "c"]) await other.catalog.deleteModel(name, owner);
    const isKnown = (name: string) => mine.isModelData({ bucket: "models", key: `${name}.tar.gz` });
    const known = () => ["a", "b", "c", "d"].filter(isKnown).join();
    for (let tickCount = 0; known() !== "d"; tickCount++) {
      assert.ok(tickCount < 1000, known());
      await nextTick();
    }
  });
}

/** Documents that deliver each batch of changes only after a call of `tellOne`. */
class LateDocuments extends MemoryDocuments {
  #reported = Promise.withResolvers<void>();

  tellOne(): void {
    this.#reported.resolve();
    this.#reported = Promise.withResolvers();
  }

  override async *changes(sinceVersion: number, signal: AbortSignal): AsyncIterable<ChangeBatch> {
    for await (const batch of super.changes(sinceVersion, signal)) {
      await rejectOnAbort(this.#reported.promise, signal);
      yield batch;
    }
  }
}

test("a late change event does not restore a deleted record", async () => {
  const documents = new LateDocuments();
  await using hosting = await open(documents);
  await hosting.catalog.createModel(modelOf("m"));
  await nextTick();
  await hosting.catalog.deleteModel("m", owner);
  for (let batches = 0; batches < 3; batches++) {
    documents.tellOne();
    await nextTick();
    assert.equal(hosting.isModelData({ bucket: "models", key: "m.tar.gz" }), false);
  }
  await hosting.catalog.createModel(modelOf("m", "s3://b/again"));
  assert.equal(hosting.isModelData({ bucket: "b", key: "again" }), true);
});

test("a resource that is deleted while its tags are read is not tagged", async () => {
  const documents = new MemoryDocuments();
  await using hosting = await open(documents);
  const { arn } = await hosting.catalog.createModel(modelOf("m"));
  const get = documents.get.bind(documents);
  documents.get = async (kind, key) => {
    if (kind === "tags") {
      documents.get = get;
      await hosting.catalog.deleteModel("m", owner);
    }
    return await get(kind, key);
  };
  await assert.rejects(hosting.catalog.addTags(arn, [{ Key: "k", Value: "v" }]), /Could not find model/);
  assert.equal(await documents.get("tags", arn), null);
});
