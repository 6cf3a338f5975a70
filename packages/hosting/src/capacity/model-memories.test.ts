import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { AwsError, silentLogger, systemClock } from "@galatea/base";
import { DocumentMemory, MemoryDocuments } from "../records/contracts/index.ts";
import type { ContainerDefinition, ModelRecord } from "../definitions/index.ts";
import { significantGrowth, ModelMemoryEstimates, type ModelMemoryEstimatesOptions } from "./model-memories.ts";
import { HostingStore } from "../store/index.ts";

const mebi = 2 ** 20;
const owner = { accountId: "000000000000", region: "us-east-1" };

/** Returns a bucket with objects of the given lengths. A listing has two objects on each page. */
function objectsOf(lengths: Readonly<Record<string, number>>): ModelMemoryEstimatesOptions["objects"] {
  return {
    head: (_bucket: string, key: string) => {
      const byteLength = lengths[key];
      if (byteLength === undefined) return Promise.reject(new AwsError("NoSuchKey", "none"));
      return Promise.resolve({ byteLength });
    },
    list: (_bucket: string, { prefix, startAfter }: { readonly prefix: string; readonly startAfter: string }) => {
      const keys = Object.keys(lengths).filter((key) => key.startsWith(prefix) && key > startAfter);
      const objects = keys.slice(0, 2).map((key) => ({ key, byteLength: lengths[key] }));
      return Promise.resolve({ objects, nextStartAfter: keys.length > 2 ? keys[1] : null });
    },
  } as unknown as ModelMemoryEstimatesOptions["objects"];
}

async function opened(lengths: Readonly<Record<string, number>>) {
  const store = await HostingStore.open(new MemoryDocuments(new DocumentMemory()), {
    clock: systemClock,
    logger: silentLogger,
  });
  return { store, memories: new ModelMemoryEstimates({ store, objects: objectsOf(lengths), logger: silentLogger }) };
}

function modelOf(containers: readonly ContainerDefinition[], createdMs = 1): ModelRecord {
  const more = { arn: "arn", owner, executionMode: "Serial", request: {} } as const;
  return { name: "Model", createdMs, containers, ...more };
}

test("a model that never ran is expected to take the size of its data; a multi-model container is expected to take nothing", async () => {
  const { store, memories } = await opened({ "a.tar.gz": 7, "w/1": 1, "w/2": 2, "w/3": 4, "w/4": 8, "w/5": 16 });
  await using _store = store;
  await using _memories = memories;
  const source = (CompressionType: "None" | "Gzip", S3DataType: "S3Prefix" | "S3Object", S3Uri: string) =>
    ({ ModelDataSource: { S3DataSource: { CompressionType, S3DataType, S3Uri } } }) as const;
  const model = modelOf([
    { ModelDataUrl: "s3://b/a.tar.gz" },
    source("None", "S3Prefix", "s3://b/w/"),
    source("None", "S3Object", "s3://b/w/3"),
    source("Gzip", "S3Object", "s3://b/a.tar.gz"),
    { ModelDataUrl: "s3://b/not-there" },
    { ModelDataUrl: "s3://b/w/", Mode: "MultiModel" },
    {},
  ]);
  assert.deepEqual(await memories.expectedBytes(model), [7, 31, 4, 7, 0, 0, 0]);
});

test("measured memory is stored, survives a restart, and does not apply to a new model of the same name", async () => {
  const { store, memories } = await opened({ "a.tar.gz": 7 });
  await using _store = store;
  await using _memories = memories;
  const model = modelOf([{ ModelDataUrl: "s3://b/a.tar.gz" }, { Mode: "MultiModel", ModelDataUrl: "s3://b/" }]);
  const { models, modelMemories } = store.kinds;
  await store.write([models.putChange("model", model, "absent")]);
  const known = async () => (await memories.expectedBytes(model)).map((bytes) => bytes / mebi);
  memories.recordMeasured(model, [500 * mebi, 0]);
  await eventually(async () => (await known())[0] === 372);
  // Measurements below the recorded values, or slightly above, are not written.
  const before = await modelMemories.find("model");
  memories.recordMeasured(model, [400 * mebi, 0]);
  await eventually(async () => {
    memories.recordMeasured(model, [510 * mebi, 0]);
    await new Promise((resolve) => setImmediate(resolve));
    return true;
  });
  memories.recordMeasured(model, [900 * mebi, 0]);
  await eventually(async () => {
    memories.recordMeasured(model, [900 * mebi, 0]);
    return (await known())[0] === 772;
  });
  const after = await modelMemories.find("model");
  assert(before.at === "found" && after.at === "found");
  assert.equal(after.version, before.version + 1);
  const next = new ModelMemoryEstimates({ store, objects: objectsOf({}), logger: silentLogger });
  await using _next = next;
  assert.deepEqual(await next.expectedBytes(model), [772 * mebi, 0]);
  assert.deepEqual(await memories.expectedBytes({ ...model, createdMs: 2 }), [7, 0]);
});

test("a measurement that is already stored is not read again, and a failed write is retried", async () => {
  const { store, memories } = await opened({});
  await using _store = store;
  await using _memories = memories;
  const model = modelOf([{}]);
  const { models, modelMemories } = store.kinds;
  await store.write([models.putChange("model", model, "absent")]);
  let [readCount, isFull] = [0, true];
  const find = models.find.bind(models);
  models.find = (key) => {
    readCount += 1;
    return isFull ? Promise.reject(new Error("database or disk is full")) : find(key);
  };
  const written = async () => (await modelMemories.find("model")).at === "found";
  memories.recordMeasured(model, [100 * mebi]);
  await eventually(() => readCount === 1);
  isFull = false;
  await eventually(async () => {
    memories.recordMeasured(model, [100 * mebi]);
    return await written();
  });
  const before = readCount;
  for (let again = 0; again < 100; again += 1) memories.recordMeasured(model, [101 * mebi]);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(readCount, before);
});

test("no measurement is stored for a deleted model", async () => {
  const { store, memories } = await opened({});
  await using _store = store;
  memories.recordMeasured(modelOf([{}]), [mebi]);
  await memories[Symbol.asyncDispose]();
  assert.equal((await store.kinds.modelMemories.find("model")).at, "absent");
});

test("significantGrowth ignores growth of less than about 6 % or 8 MiB", () => {
  assert.deepEqual(significantGrowth([], [5]), [5]);
  assert.equal(significantGrowth([], [0]), null);
  assert.equal(significantGrowth([100 * mebi], [107 * mebi]), null);
  assert.deepEqual(significantGrowth([100 * mebi, 300], [109 * mebi, 200]), [109 * mebi, 300]);
  assert.equal(significantGrowth([1000 * mebi], [1060 * mebi]), null);
  assert.deepEqual(significantGrowth([1000 * mebi], [1063 * mebi]), [1063 * mebi]);
});
