/** Memory of single models on a node, with real processes that use it, and the errors if there is too little. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { nodeWith } from "../src/nodes/node-fixture.ts";
import { silentLogger } from "@galatea/base";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { openDirectoryStore } from "../src/objects/index.ts";
import type { Hosting } from "../src/index.ts";
import { DocumentMemory, MemoryDocuments } from "../src/records/contracts/index.ts";
import { imaged, openHosting, owner } from "./hosting-fixture.ts";
import { TrafficFixture, until } from "./traffic-fixture.ts";

const mebi = 2 ** 20;
const never = new AbortController().signal;

/** A container that allocates the given number of bytes before it listens. */
const program = `
import { createServer } from "node:http";
const parent = process.ppid; setInterval(() => process.ppid === parent || process.exit(), 1000).unref(); // Killed tests leave none.
const [socketPath, bytes] = process.argv.slice(2);
process.on("SIGTERM", () => process.exit(0));
globalThis.held = Buffer.alloc(Number(bytes), 1);
createServer((_request, response) => response.end()).listen(socketPath);
`;

async function deploy(hosting: Hosting, name: string, instanceCount = 1): Promise<void> {
  await configure(hosting, name, instanceCount);
  await hosting.endpoints.create({ name, configName: name, owner, tags: [], deploymentConfig: null });
  await hosting.waitUntilStable(name, { waitMsMax: testTimeoutMs, signal: never });
}

async function configure(hosting: Hosting, name: string, InitialInstanceCount: number): Promise<void> {
  const variant = { VariantName: "v", ModelName: "heavy", InstanceType: "ml.m5.large", InitialVariantWeight: 1 };
  const variants = [{ ...variant, InitialInstanceCount }];
  await hosting.catalog.createConfig({ owner, request: {}, tags: [], name, variants });
}

test("draining instances count their memory until they end, although the record no longer has them", async () => {
  await using bench = await TrafficFixture.open(undefined, null, { nodes: [nodeWith(600 * mebi)] });
  await bench.deploy("leaving", [{ name: "a", InitialInstanceCount: 2 }]);
  await bench.configure("further", [{ name: "b", InitialInstanceCount: 3 }]);
  const create = () =>
    bench.hosting.endpoints.create({
      name: "further",
      configName: "further",
      owner,
      tags: [],
      deploymentConfig: null,
    });
  // Each of the two instances has one pending request.
  const blocked = [bench.call("leaving", "hold one"), bench.call("leaving", "hold two")];
  await until("both requests are pending", () => bench.heldCount() === 2);
  await bench.hosting.endpoints.resize("leaving", [{ variantName: "a", instanceCount: 1 }], owner);
  await bench.settled("leaving");
  await assert.rejects(create(), missing);
  bench.signal("SIGUSR2");
  await Promise.all(blocked);
  await until("the deleted instances have ended", () => bench.running().length === 1);
  await until("an endpoint can be created", async () => {
    const error = await create().then(
      () => null,
      (cause: unknown) => cause,
    );
    return error === null;
  });
});

const missing = { code: "ResourceLimitExceeded", message: /Memory of the nodes.* MiB are missing/ };

test("the measured memory of a model counts for other instances, its next endpoint, an update, and the next run of the platform", async () => {
  await using closing = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "gal-memory-"));
  closing.defer(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, "container.mjs");
  await writeFile(path, program);
  const store = closing.use(await openDirectoryStore({ folder: join(directory, "objects"), logger: silentLogger }));
  const documents = new DocumentMemory();
  const open = () =>
    openHosting({
      directory,
      store,
      documents,
      argumentsFor: ({ BYTES = "" }, socketPath) => [path, socketPath, BYTES],
      onSample: () => {},
      logs: new Map(),
      nodes: [nodeWith(700 * mebi)],
    });
  {
    await using fixture = await open();
    const { hosting } = fixture;
    const containers = imaged([{ Environment: { BYTES: String(400 * mebi) } }]);
    const model = { owner, request: {}, tags: [], name: "heavy", containers, executionMode: "Serial" } as const;
    await hosting.catalog.createModel(model);
    // The model has not been measured yet: only the 128 MiB of its container are reserved.
    await deploy(hosting, "first");
    const records = new MemoryDocuments(documents);
    await until("its memory is written down", async () => (await records.get("model-memory", "heavy")) !== null);
    await assert.rejects(deploy(hosting, "second"), missing);
    const plain = { deploymentConfig: null, retainsDeployment: false, retained: new Set<never>() };
    const update = hosting.endpoints.update({ ...plain, name: "first", configName: "second", owner });
    await assert.rejects(update, missing);
    await hosting.endpoints.delete("first", owner);
    await hosting.waitUntilStable("first", { waitMsMax: testTimeoutMs, signal: never });
  }
  await using fixture = await open();
  const { hosting } = fixture;
  // No instance is running, and the node has memory for one instance.
  await assert.rejects(deploy(hosting, "two", 2), missing);
  await deploy(hosting, "one");
  assert.equal((await hosting.endpoints.find("one", owner)).state.at, "InService");
});
