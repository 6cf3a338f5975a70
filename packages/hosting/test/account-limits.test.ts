import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import { DocumentMemory, MemoryDocuments } from "../src/records/contracts/index.ts";
import { openDocuments } from "../src/records/index.ts";
import { Hosting, type HostingOptions } from "../src/hosting.ts";
import { nodeWith } from "../src/nodes/node-fixture.ts";
import { hostingLimits } from "../src/capacity/reservations.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-limits-"));
after(() => rmSync(root, { recursive: true, force: true }));

const owner = { accountId: "000000000000", region: "us-east-1" };

test("a request over a limit of the account gets ResourceLimitExceeded with limit, utilization and request", async () => {
  const path = join(root, "records.db");
  await using documents = await openDocuments({ path, logger: silentLogger });
  await using hosting = await Hosting.open({
    documents,
    limits: { ...hostingLimits, modelsMax: 1, configsMax: 1, endpointsMax: 0 },
    nodes: [nodeWith()],
    random: Math.random,
    alarmState: () => null,
    // The test starts no instance.
    fleet: {
      host: {},
      clock: systemClock,
      logger: silentLogger,
      requestMemory: new ByteBudget(2 ** 20),
    } as unknown as HostingOptions["fleet"],
  });
  const model = (name: string) =>
    hosting.catalog.createModel({ name, owner, containers: [{}], executionMode: "Serial", request: {}, tags: [] });
  const config = (name: string) => hosting.catalog.createConfig({ name, owner, variants: [], request: {}, tags: [] });
  await model("a");
  await config("a");
  for (const [call, what, unit, limit] of [
    [model("b"), "Number of models", "Models", 1],
    [config("b"), "Number of endpoint configurations", "Endpoint Configurations", 1],
    [
      hosting.endpoints.create({ name: "a", configName: "a", owner, tags: [], deploymentConfig: null }),
      "Number of endpoints",
      "Endpoints",
      0,
    ],
  ] as const) {
    await assert.rejects(call, {
      code: "ResourceLimitExceeded",
      message:
        `The account-level service limit '${what}' is ${limit} ${unit}, with current utilization of ${limit} ${unit} ` +
        `and a request delta of 1 ${unit}. Please use fewer, or delete what is no longer needed.`,
    });
  }
});

test("containers are counted over all instances of endpoints and transform jobs, also during writes", async () => {
  await using hosting = await Hosting.open({
    documents: new MemoryDocuments(new DocumentMemory()),
    limits: { ...hostingLimits, containersMax: 8 },
    nodes: [nodeWith()],
    random: Math.random,
    alarmState: () => null,
    fleet: {
      host: {},
      clock: systemClock,
      logger: silentLogger,
      requestMemory: new ByteBudget(2 ** 20),
    } as unknown as HostingOptions["fleet"],
  });
  const three = [{}, {}, {}] as const;
  const shared = { name: "three", owner, request: {}, tags: [] };
  await hosting.catalog.createModel({ ...shared, containers: three, executionMode: "Serial" });
  const config = async (name: string, InitialInstanceCount: number) => {
    const variant = { VariantName: "v", ModelName: "three", InstanceType: "ml.m5.large", InitialVariantWeight: 1 };
    await hosting.catalog.createConfig({ ...shared, name, variants: [{ ...variant, InitialInstanceCount }] });
    return hosting.endpoints.create({ name, configName: name, owner, tags: [], deploymentConfig: null });
  };
  const refusal = (used: number, expected: number) => ({
    code: "ResourceLimitExceeded",
    message:
      "The account-level service limit 'Number of containers of all instances' is 8 Containers, with current utilization of " +
      `${used} Containers and a request delta of ${expected} Containers. Please use fewer, or delete what is no longer needed.`,
  });
  await assert.rejects(config("a", 3), refusal(0, 9));
  const outcomes = await Promise.allSettled([config("b", 2), config("c", 1)]);
  assert.deepEqual(outcomes.map(({ status }) => status).toSorted(), ["fulfilled", "rejected"]);
});

test("an endpoint that exceeds the node's memory is rejected with the missing amount", async () => {
  const gibi = 2 ** 30;
  await using hosting = await Hosting.open({
    documents: new MemoryDocuments(new DocumentMemory()),
    limits: hostingLimits,
    nodes: [nodeWith(10 * gibi)],
    random: Math.random,
    alarmState: () => null,
    fleet: {
      host: {},
      clock: systemClock,
      logger: silentLogger,
      requestMemory: new ByteBudget(2 ** 20),
    } as unknown as HostingOptions["fleet"],
  });
  const shared = { owner, request: {}, tags: [] };
  const withMemory = (bytes: number) => ({ Environment: { GALATEA_MODEL_MEMORY_BYTES: String(bytes) } });
  const config = async (name: string, InitialInstanceCount: number, bytes: number, InstanceType = "ml.m5.xlarge") => {
    await hosting.catalog.createModel({
      ...shared,
      name,
      containers: [withMemory(bytes), {}],
      executionMode: "Serial",
    });
    const variant = { VariantName: "v", ModelName: name, InstanceType, InitialVariantWeight: 1 };
    await hosting.catalog.createConfig({ ...shared, name, variants: [{ ...variant, InitialInstanceCount }] });
  };
  const create = (name: string) =>
    hosting.endpoints.create({ name, configName: name, owner, tags: [], deploymentConfig: null });
  const refusal = (used: number, expected: number, missing: number) => ({
    code: "ResourceLimitExceeded",
    message:
      "The account-level service limit 'Memory of the nodes' is 10240 MiB, with current utilization of " +
      `${used} MiB and a request delta of ${expected} MiB. Please use fewer, or delete what is no longer needed. ` +
      "A model counts with its highest measured memory, or with the size of its data if it was never measured. " +
      `${missing} MiB are missing: use fewer instances, set a lower GALATEA_MODEL_MEMORY_BYTES in the Environment of the model's ` +
      "containers, or delete other endpoints and transform jobs.",
  });
  // Each instance needs 128 MiB for each of its two containers, in addition to the guaranteed memory of their models.
  await config("small", 2, 3 * gibi);
  await config("large", 2, 5 * gibi);
  await config("clipped", 1, 100 * gibi, "ml.m5.large");
  await assert.rejects(create("large"), refusal(0, 10752, 512));
  await create("small");
  await assert.rejects(create("small-2"), /Could not find/);
  // The guarantee is limited by the instance type: 90% of 8 GiB, of which each of two containers gets half.
  await assert.rejects(create("clipped"), refusal(6656, 3943, 359));
  await config("tiny", 1, 1);
  await create("tiny");
  await hosting.catalog.deleteModel("small", owner);
  // Memory of an instance type is not guaranteed without GALATEA_MODEL_MEMORY_BYTES.
  await hosting.catalog.createModel({ ...shared, name: "plain", containers: [{}], executionMode: "Serial" });
  const plain = { VariantName: "v", ModelName: "plain", InstanceType: "ml.m5.24xlarge", InitialVariantWeight: 1 };
  await hosting.catalog.createConfig({
    ...shared,
    name: "plain",
    variants: [{ ...plain, InitialInstanceCount: 26 }],
  });
  await assert.rejects(create("plain"), refusal(6913, 3328, 1));
});
