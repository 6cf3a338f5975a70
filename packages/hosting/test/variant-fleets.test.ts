/** Tests that all three kinds of fleets must pass, with real processes. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { nodeWith } from "../src/nodes/node-fixture.ts";
import { silentLogger } from "@galatea/base";
import { Nodes, noResources } from "../src/nodes/index.ts";
import type { ProductionVariant } from "../src/definitions/index.ts";
import type { FleetIdentity } from "../src/endpoints/fleet-identity.ts";
import type { FleetDependencies } from "../src/endpoints/fleet.ts";
import { Fleet } from "../src/endpoints/fleet.ts";
import { LocalInstanceAgent } from "../src/instance-agent/index.ts";
import { derivePlacementKey } from "../src/endpoints/model-rank.ts";
import { ServerlessFleet } from "../src/endpoints/serverless-fleet.ts";
import { SharedInstances } from "../src/endpoints/shared-instances.ts";
import type { VariantFleet } from "../src/endpoints/variant-fleet.ts";
import { openDirectoryStore } from "../src/objects/index.ts";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { imaged, openFleetOptions, owner } from "./hosting-fixture.ts";
import { until } from "./traffic-fixture.ts";

const program = `
import { createServer } from "node:http";
const parent = process.ppid; setInterval(() => process.ppid === parent || process.exit(), 1000).unref(); // Killed tests leave none.
process.on("SIGTERM", () => process.exit(0));
createServer((request, response) => response.end()).listen(process.argv[2]);
`;

const never = new AbortController().signal;
const names: FleetIdentity = {
  ...owner,
  endpointName: "e",
  fleetKey: "1 v",
  configName: "c",
  placementKey: derivePlacementKey("e"),
};
const concurrency = { max: 2, provisioned: 0 };

interface Kind {
  readonly name: string;
  readonly variant: Partial<ProductionVariant>;
  readonly open: (plan: ConstructorParameters<typeof Fleet>[0], dependencies: FleetDependencies) => VariantFleet;
  /** True if the fleet's instances are processes, which use memory. */
  readonly runs: boolean;
}

const kinds: readonly Kind[] = [
  {
    name: "instances of its own",
    variant: {},
    open: (plan, dependencies) => new Fleet(plan, names, dependencies),
    runs: true,
  },
  {
    name: "an instance on demand",
    variant: { InstanceType: "serverless", ServerlessConfig: { MemorySizeInMB: 1024, MaxConcurrency: 2 } },
    open: (plan, dependencies) => new ServerlessFleet(plan, { names, concurrency }, dependencies),
    runs: true,
  },
  {
    name: "instances that components share",
    variant: {},
    open: (plan) => new SharedInstances(plan, names),
    runs: false,
  },
];

async function openKind({ variant, open }: Kind) {
  await using opening = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "gal-fleets-"));
  opening.defer(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, "container.mjs");
  await writeFile(path, program);
  const store = opening.use(await openDirectoryStore({ folder: join(directory, "objects"), logger: silentLogger }));
  const { fleet } = opening.use(
    await openFleetOptions({
      directory,
      store,
      documents: new DocumentMemory(),
      argumentsFor: (_environment, socketPath) => [path, socketPath],
      onSample: () => {},
      logs: new Map(),
      instances: { idleMsMax: 1 },
    }),
  );
  const claims = new Set<object>();
  const held = () => {
    const claim = { [Symbol.dispose]: () => void claims.delete(claim) };
    claims.add(claim);
    return claim;
  };
  const unrecorded = {
    recordedBytes: () => 0,
    recordedCounts: () => [],
    pendingBytes: () => 0,
    pendingInstances: () => [],
    recordsChanged: () => new Promise<void>(() => {}),
  };
  const node = nodeWith();
  const nodes = new Nodes({ nodes: [node], ...unrecorded });
  const agent = opening.use(new LocalInstanceAgent({ ...fleet, node, memory: nodes.memoryOf(node.id) }));
  const dependencies: FleetDependencies = {
    fleet: { ...fleet, nodes, agentOf: () => agent, replacesLost: false },
    random: () => 0,
    newId: () => `i${(idCount += 1)}`,
    claim: held,
    memorySeen: () => {},
  };
  const model = {
    name: "m",
    arn: "arn",
    createdMs: 0,
    owner,
    containers: imaged([{}]),
    executionMode: "Serial" as const,
    request: {},
  };
  const plan = {
    model,
    variant: {
      VariantName: "v",
      ModelName: "m",
      InstanceType: "ml.m5.large",
      InitialInstanceCount: 1,
      InitialVariantWeight: 1,
      ...variant,
    },
  };
  const opened = opening.use(open(plan, dependencies));
  const closing = opening.move();
  return { fleet: opened, nodes, claims, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

let idCount = 0;

for (const kind of kinds) {
  test(`${kind.name}: a fleet scales out, in and out again, and its disposal leaves no process`, async () => {
    await using opened = await openKind(kind);
    const { fleet, nodes, claims } = opened;
    assert.equal(fleet.variantName, "v");
    assert.deepEqual([fleet.inServiceCount, fleet.models], [0, null]);
    assert.equal(await fleet.growTo(1, never), 1);
    assert.equal(await fleet.growTo(1, never), 0);
    assert.equal(await fleet.growTo(0, never), 0);
    await fleet.inService(never);
    assert.equal(fleet.inServiceCount, 1);
    assert.equal((nodes.all[0]?.reserved.memoryBytes ?? 0) > 0, kind.runs);
    assert.equal(fleet.holdsSession("none"), false);
    await fleet.shrinkTo({ instanceCount: 1 }, never);
    assert.equal(fleet.inServiceCount, 1);
    await fleet.shrinkTo({ instanceCount: 0 }, never);
    await until("all instances have ended", () => fleet.inServiceCount === 0);
    await until("nothing is reserved", () => nodes.all[0]?.reserved.memoryBytes === 0);
    assert.equal(await fleet.growTo(1, never), 1);
    await fleet.drain(never);
    assert.deepEqual([fleet.inServiceCount, fleet.canServe], [0, false]);
    assert.equal(claims.size, 0);
    assert.deepEqual(nodes.all[0]?.reserved, noResources);
  });

  test(`${kind.name}: a resumed fleet comes into service, and ends with the platform`, async () => {
    await using opened = await openKind(kind);
    const { fleet, nodes, claims } = opened;
    fleet.resume(1);
    await fleet.inService(never);
    assert.equal(fleet.inServiceCount, 1);
    await fleet.shutDown();
    assert.equal(claims.size, 0);
    assert.deepEqual(nodes.all[0]?.reserved, noResources);
  });
}
