import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { AwsError, silentLogger, systemClock } from "@galatea/base";
import { DocumentMemory, MemoryDocuments } from "../records/contracts/index.ts";
import type { VariantPlan } from "../definitions/index.ts";
import {
  footprintBytes,
  newEndpointRecord,
  newGeneration,
  peakFootprint,
  stableGeneration,
  type Footprint,
} from "../endpoints/index.ts";
import { nodeWith } from "../nodes/node-fixture.ts";
import { hostingLimits, Reservations } from "./reservations.ts";
import { HostingStore } from "../store/index.ts";

const mebi = 2 ** 20;
const owner = { accountId: "000000000000", region: "us-east-1" };
const limitMebi = 4096;

interface RequestedCall {
  readonly instanceCount: number;
  readonly expectedMebi: number;
  readonly isServerless: boolean;
  readonly hasShadow: boolean;
}

/** Returns an endpoint with one variant, and with a shadow variant of the same size if `hasShadow`. */
function endpointOf(name: string, { instanceCount, expectedMebi, isServerless, hasShadow }: RequestedCall) {
  const more = { arn: "", createdMs: 0, owner, request: {}, executionMode: "Serial" } as const;
  const model = { name: "m", containers: [{ ModelDataUrl: "s3://b/m" }] as const, ...more };
  const variant = { VariantName: "v", ModelName: "m", InstanceType: "ml.m5.large", InitialVariantWeight: 1 };
  const serverless = { MemorySizeInMB: 1024, MaxConcurrency: 1, ProvisionedConcurrency: 1 };
  const plan: VariantPlan = {
    variant: {
      ...variant,
      InitialInstanceCount: isServerless ? 1 : instanceCount,
      ...(isServerless ? { ServerlessConfig: serverless } : {}),
    },
    model,
    expectedBytes: [expectedMebi * mebi],
  };
  const plans = hasShadow && !isServerless ? [plan, { ...plan, isShadow: true as const }] : [plan];
  const generation = stableGeneration(newGeneration(1, { configName: "c", plans }));
  return newEndpointRecord({ name, arn: "", owner, placementKey: "0", deploymentConfig: null }, generation, 0);
}

function reservationsOf(store: HostingStore, memoryMebi: number): Reservations {
  const limits = { ...hostingLimits, instancesMax: Infinity, containersMax: Infinity };
  return new Reservations({ store, nodes: [nodeWith(memoryMebi * mebi)], limits });
}

/** Returns the expected memory in MiB, computed independently of the tested code. */
const mebiOf = ({ instanceCount, expectedMebi, isServerless, hasShadow }: RequestedCall) =>
  isServerless ? 128 + 1024 : (hasShadow ? 2 : 1) * instanceCount * (128 + expectedMebi);

const requested = fc.record({
  instanceCount: fc.integer({ min: 1, max: 4 }),
  expectedMebi: fc.nat(600),
  isServerless: fc.boolean(),
  hasShadow: fc.boolean(),
});
const step = fc.oneof(
  // The endpoint is recorded immediately, or only reserved while others are created.
  fc.record({ do: fc.constant("create" as const), asked: requested, isHeld: fc.boolean() }),
  fc.record({ do: fc.constant("delete" as const), which: fc.nat(9) }),
  fc.record({ do: fc.constant("take" as const), beyondMebi: fc.nat(500) }),
);

test("property: an endpoint is accepted exactly if its memory fits in the node, and a rejection states the missing memory", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const options = { clock: systemClock, logger: silentLogger };
      await using store = await HostingStore.open(new MemoryDocuments(new DocumentMemory()), options);
      const reservations = reservationsOf(store, limitMebi);
      using held = new DisposableStack();
      const there = new Map<string, number>();
      let beyondMebi = 0;
      using placed = reservations.nodes.restore({ needs: {} });
      const { endpoints } = store.kinds;
      for (const [index, each] of steps.entries()) {
        const usedMebi = [...there.values()].reduce((sum, one) => sum + one, beyondMebi);
        if (each.do === "take") {
          beyondMebi = each.beyondMebi;
          placed.setExcessBytes(beyondMebi * mebi);
        } else if (each.do === "delete") {
          const name = [...there.keys()][each.which] ?? "";
          if (store.view.endpointState(name) === null) continue;
          await store.write([endpoints.deleteChange(name, "any")]);
          there.delete(name);
        } else {
          const name = `e${index}`;
          const record = endpointOf(name, each.asked);
          const wantedMebi = mebiOf(each.asked);
          const missingMebi = usedMebi + wantedMebi - limitMebi;
          const reserve = () => reservations.reserveEndpoint(name, peakFootprint(record), "ml.m5.large");
          if (missingMebi > 0) {
            const isReported = (error: unknown) =>
              error instanceof AwsError && error.message.includes(` ${missingMebi} MiB are missing`);
            assert.throws(reserve, isReported);
            continue;
          }
          const reserved = reserve();
          there.set(name, wantedMebi);
          if (each.isHeld) held.use(reserved);
          else {
            await store.write([endpoints.putChange(name, record, "absent")]);
            reserved[Symbol.dispose]();
          }
        }
      }
    }),
    { numRuns: 100 },
  );
});

test("property: after each write the view has the sum of all records, and the nodes have the sum of records and draining instances", async () => {
  const write = fc.record({ which: fc.nat(5), asked: fc.option(requested, { nil: null }), drainingMebi: fc.nat(600) });
  await fc.assert(
    fc.asyncProperty(fc.array(write, { maxLength: 25 }), async (writes) => {
      const options = { clock: systemClock, logger: silentLogger };
      await using store = await HostingStore.open(new MemoryDocuments(new DocumentMemory()), options);
      const { nodes } = reservationsOf(store, limitMebi);
      const { endpoints } = store.kinds;
      const drainingMebi = new Map<string, number>();
      const counted = new Map<string, ReturnType<typeof nodes.countDraining>>();
      for (const { which, asked: to, ...draining } of writes) {
        const name = `e${which}`;
        const before = store.view.endpointState(name);
        if (to !== null)
          await store.write([endpoints.putChange(name, endpointOf(name, to), before === null ? "absent" : "any")]);
        else if (before !== null) await store.write([endpoints.deleteChange(name, "any")]);
        drainingMebi.set(name, draining.drainingMebi);
        const look = () => ({ owner: name, bytes: (drainingMebi.get(name) ?? 0) * mebi, sinceMs: 0, isEnding: false });
        if (to === null) {
          counted.get(name)?.[Symbol.dispose]();
          counted.delete(name);
        } else if (counted.has(name)) counted.get(name)?.update();
        else counted.set(name, nodes.countDraining(look));
        const all = Array.from({ length: 6 }, (_, index) => store.view.endpointFootprint(`e${index}`));
        const sum = (of: (footprint: Footprint) => number) => all.reduce((total, each) => total + of(each), 0);
        const { footprint } = store.view;
        assert.equal(
          footprint.instanceCount,
          sum(({ instanceCount }) => instanceCount),
        );
        assert.equal(
          footprint.containerCount,
          sum(({ containerCount }) => containerCount),
        );
        assert.equal(
          footprint.modelBytes,
          sum(({ modelBytes }) => modelBytes),
        );
        const sizes = new Set(all.flatMap(({ countsByBytes }) => [...(countsByBytes?.keys() ?? [])]));
        assert.deepEqual(
          footprint.countsByBytes,
          new Map(
            [...(footprint.countsByBytes?.keys() ?? [])].map((bytes) => [
              bytes,
              sum(({ countsByBytes }) => countsByBytes?.get(bytes) ?? 0),
            ]),
          ),
        );
        assert.deepEqual(sizes, new Set(footprint.countsByBytes?.keys()));
        const drainingBytes = [...counted.keys()].reduce(
          (total, each) => total + (drainingMebi.get(each) ?? 0) * mebi,
          0,
        );
        assert.equal(nodes.usedBytes, sum(footprintBytes) + drainingBytes);
      }
    }),
    { numRuns: 100 },
  );
});

test("a request that needs no more memory is accepted on a full node, and a rejection says when draining memory is free", async () => {
  const options = { clock: systemClock, logger: silentLogger };
  await using store = await HostingStore.open(new MemoryDocuments(new DocumentMemory()), options);
  const reservations = reservationsOf(store, 1024);
  const drains = (name: string, drainingMebi: number, isEnding: boolean) =>
    reservations.nodes.countDraining(() => ({
      owner: `endpoint "${name}"`,
      bytes: drainingMebi * mebi,
      sinceMs: 0,
      isEnding,
    }));
  using draining = new DisposableStack();
  draining.use(drains("a", 512, false));
  draining.use(drains("b", 700, true));
  draining.use(drains("none", 0, false));
  const reserve = (containerCount: number) =>
    reservations.reserveEndpoint("e", { instanceCount: containerCount, containerCount, modelBytes: 0 }, "ml.m5.large");
  reserve(0)[Symbol.dispose]();
  const isReported = (missingMebi: number, text: string) => (error: unknown) =>
    error instanceof AwsError &&
    error.message.includes(` ${missingMebi} MiB are missing`) &&
    error.message.endsWith(text);
  const both =
    '1212 MiB of the utilization are freed when draining instances have ended (endpoint "a", endpoint "b"), at the latest at';
  assert.throws(() => reserve(1), isReported(316, `${both} 1970-01-01T01:01:00.000Z: retry then.`));
  assert.throws(() => reserve(9), isReported(1340, `${both} 1970-01-01T01:01:00.000Z.`));
  draining.dispose();
  reserve(8)[Symbol.dispose]();
  using _last = drains("b", 700, true);
  assert.throws(
    () => reserve(8),
    isReported(700, '(endpoint "b"), at the latest at 1970-01-01T00:02:00.000Z: retry then.'),
  );
});
