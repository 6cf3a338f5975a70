/**
 * The platform is killed after any write of a transition of an inference component. The next run reaches the same final
 * state.
 */
import type { ComponentEvent } from "../src/index.ts";
import {
  recordedTransitionsContract,
  type DocumentMemory,
  type RecordedTransition,
} from "../src/records/contracts/index.ts";
import { componentSettled, createComponent, deployShared, spec, updateComponent } from "./components-fixture.ts";
import { owner } from "./hosting-fixture.ts";
import { TrafficFixture } from "./traffic-fixture.ts";

const [endpoint, name] = ["kept", "model"];
const batch = { Type: "INSTANCE_COUNT", Value: 1 } as const;
const rolling = { batch, rollbackBatch: batch, waitMs: 20, limitMs: null };
const managed = { ManagedInstanceScaling: { Status: "ENABLED", MinInstanceCount: 0, MaxInstanceCount: 3 } };

interface Found {
  /** State of the component, and whether it has a failure reason. */
  readonly status: readonly [at: string, isExplained: boolean] | null;
  /** Number of recorded copies, and of copies in service. */
  readonly copies: readonly [recorded: number, inService: number];
  readonly running: string;
  readonly instanceCount: number;
  readonly documents: string;
}

const common = { documents: "inference-component,tags", instanceCount: 1 };
const failed: Found = { ...common, status: ["Failed", true], copies: [0, 0], running: "" };
const removed: Found = { status: null, copies: [0, 0], running: "", instanceCount: 1, documents: "" };

function serving(running: string, isExplained = false): Found {
  const copyCount = running === "" ? 0 : running.split(" ").length;
  return { ...common, status: ["InService", isExplained], copies: [copyCount, copyCount], running };
}

async function found(bench: TrafficFixture, { held }: DocumentMemory): Promise<Found> {
  const { components } = bench.hosting;
  const record = await components.find(name, owner).catch(() => null);
  const { generations } = await bench.hosting.endpoints.find(endpoint, owner);
  const state = record?.state;
  const isExplained = state?.at === "Failed" || (state?.at === "InService" && state.lastFailure !== null);
  const kinds = [...held.values()].map(({ kind }) => kind);
  return {
    documents: kinds
      .filter((kind) => kind === "inference-component" || kind === "tags")
      .toSorted()
      .join(),
    instanceCount: generations[0].variants[0]?.settled.instanceCount ?? 0,
    status: state === undefined ? null : [state.at, isExplained],
    copies: [record?.copies.length ?? 0, components.inServiceCount(name)],
    running: bench.running().toSorted().join(" "),
  };
}

const create =
  (own: string, copyCount: number, memoryGib = 1) =>
  (bench: TrafficFixture) =>
    createComponent(bench, endpoint, name, spec(own, memoryGib), copyCount, [{ Key: "k", Value: "v" }]);

const given =
  (own: string, copyCount: number, { memoryGib = 1, more = {} } = {}) =>
  async (bench: TrafficFixture): Promise<void> => {
    await deployShared(bench, endpoint, more);
    await create(own, copyCount, memoryGib)(bench);
  };

const update = (more: Parameters<typeof updateComponent>[2]) => (bench: TrafficFixture) =>
  updateComponent(bench, name, more);

const remove = (bench: TrafficFixture) => bench.hosting.components.delete(name, owner);

const rows: readonly RecordedTransition<TrafficFixture, Found>[] = [
  {
    what: "it is created",
    given: (bench) => deployShared(bench, endpoint),
    request: create("old", 2),
    end: serving("old old"),
    writesMin: 3,
  },
  {
    what: "it is created of what does not start",
    given: (bench) => deployShared(bench, endpoint),
    request: create("broken", 2),
    end: failed,
    writesMin: 3,
  },
  {
    what: "it is created without free capacity",
    given: (bench) => deployShared(bench, endpoint),
    request: create("old", 2, 5),
    end: failed,
    writesMin: 2,
  },
  {
    what: "it is updated all at once",
    given: given("old", 2),
    request: update({ spec: spec("new") }),
    end: serving("new new"),
    writesMin: 4,
  },
  {
    what: "it is updated one by one",
    given: given("old", 2),
    request: update({ spec: spec("new"), rolling }),
    end: serving("new new"),
    writesMin: 6,
  },
  {
    what: "it is updated to what does not start, and rolled back",
    given: given("old", 2),
    request: update({ spec: spec("broken"), rolling }),
    end: serving("old old", true),
    writesMin: 4,
  },
  {
    what: "it gets more copies",
    given: given("old", 1),
    request: update({ copyCount: 3 }),
    end: serving("old old old"),
    writesMin: 3,
  },
  {
    what: "it gets no copies",
    given: given("old", 2),
    request: update({ copyCount: 0 }),
    end: serving(""),
    writesMin: 3,
  },
  { what: "it is deleted", given: given("old", 2), request: remove, end: removed, writesMin: 2 },
  { what: "it is deleted while it has failed", given: given("broken", 1), request: remove, end: removed, writesMin: 2 },
  {
    what: "it is deleted while it is created",
    given: (bench) => deployShared(bench, endpoint),
    async request(bench) {
      await create("old", 2)(bench);
      await remove(bench);
    },
    orElse: [serving("old old")],
    end: removed,
    writesMin: 3,
  },
  {
    what: "it is deleted while it is updated",
    given: given("old", 2),
    async request(bench) {
      await update({ spec: spec("new"), rolling })(bench);
      await remove(bench);
    },
    orElse: [serving("new new")],
    end: removed,
    writesMin: 3,
  },
  {
    what: "the endpoint gets instances for it",
    given: (bench) => deployShared(bench, endpoint, managed),
    request: create("old", 3, 5),
    end: { ...serving("old old old"), instanceCount: 3 },
    writesMin: 5,
  },
  {
    what: "the endpoint releases instances that it no longer needs",
    given: given("old", 3, { memoryGib: 5, more: managed }),
    request: update({ copyCount: 1 }),
    end: { ...serving("old"), instanceCount: 1 },
    writesMin: 3,
  },
  {
    what: "the endpoint releases the instances of a component that does not start",
    given: (bench) => deployShared(bench, endpoint, managed),
    request: create("broken", 3, 5),
    end: { ...failed, instanceCount: 0 },
    writesMin: 3,
  },
  {
    what: "the endpoint releases the instances of a deleted component",
    given: given("old", 2, { memoryGib: 5, more: managed }),
    request: remove,
    end: { ...removed, instanceCount: 0 },
    writesMin: 3,
  },
];

recordedTransitionsContract<TrafficFixture, null, Found, ComponentEvent["kind"]>({
  name: "inference component",
  kinds: ["inference-component", "endpoint"],
  open: (memory) => TrafficFixture.open(memory),
  outside: () => null,
  settled: async (bench) => {
    await componentSettled(bench, name);
    await bench.settled(endpoint);
  },
  found,
  steps: {
    placed: [
      "it is created",
      "it gets more copies",
      "it gets no copies",
      "the endpoint gets instances for it",
      "the endpoint releases instances that it no longer needs",
    ],
    settled: ["it is created"],
    failed: [
      "it is created of what does not start",
      "it is created without free capacity",
      "it is updated to what does not start, and rolled back",
      "the endpoint releases the instances of a component that does not start",
    ],
    update: ["it is updated all at once", "it is updated one by one"],
    delete: [
      "it is deleted",
      "it is deleted while it has failed",
      "it is deleted while it is created",
      "it is deleted while it is updated",
      "the endpoint releases the instances of a deleted component",
    ],
  },
  rows,
  atOnce: 4,
});
