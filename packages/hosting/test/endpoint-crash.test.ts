/** The platform is killed after any write of a transition of an endpoint. The next run reaches the same final state. */
import type { DeploymentConfig, EndpointEvent, EndpointRecord } from "../src/index.ts";
import {
  recordedTransitionsContract,
  type DocumentMemory,
  type RecordedTransition,
} from "../src/records/contracts/index.ts";
import { owner } from "./hosting-fixture.ts";
import { TrafficFixture, type PlannedVariant } from "./traffic-fixture.ts";

const name = "mortal";

const half = { Type: "CAPACITY_PERCENT", Value: 50 } as const;
const traffic = (Type: "CANARY" | "LINEAR"): DeploymentConfig => {
  const size = Type === "CANARY" ? { CanarySize: half } : { LinearStepSize: half };
  return {
    BlueGreenUpdatePolicy: {
      TrafficRoutingConfiguration: { Type, WaitIntervalInSeconds: 0.02, ...size },
    },
  };
};
const rolling: DeploymentConfig = { RollingUpdatePolicy: { MaximumBatchSize: half, WaitIntervalInSeconds: 0.02 } };

/**
 * The observed state of the endpoint: its status and configuration, running instances, the responding one, the number
 * of instance directories, and the documents.
 */
interface Found {
  readonly status: readonly string[] | null;
  readonly running: string;
  readonly responses: string | null;
  readonly directoryCount: number;
  readonly documents: string;
}

const isOfEndpoint = (kind: string) => ["endpoint", "tags"].includes(kind);

const removed: Found = { status: null, running: "", responses: null, directoryCount: 0, documents: "" };

function at(status: string, config: string, running = ""): Found {
  const names = running === "" ? [] : running.split(" ");
  const documents = "endpoint,tags";
  return { status: [status, config], running, responses: names[0] ?? null, directoryCount: names.length, documents };
}

async function found(bench: TrafficFixture, { held }: DocumentMemory): Promise<Found> {
  const status = await bench.status(name).catch(() => null);
  const responses = await bench.call(name, "x").catch(() => null);
  return {
    status: status === null ? null : [status[0], status[1]],
    running: bench.running().toSorted().join(" "),
    responses: responses?.container ?? null,
    directoryCount: await bench.directoryCount(),
    documents: [...held.values()]
      .flatMap(({ kind }) => (isOfEndpoint(kind) ? [kind] : []))
      .toSorted()
      .join(),
  };
}

const variant = (own: string, more: Partial<PlannedVariant> = {}): PlannedVariant => {
  return { name: own, VariantName: "v", InitialInstanceCount: 2, ...more };
};
/** Name of an alarm that is in ALARM while the old generation has fewer instances than its desired number. */
const fewer = "fewer";
const alarmed: DeploymentConfig = { ...rolling, AutoRollbackConfiguration: { Alarms: [{ AlarmName: fewer }] } };

/**
 * Returns whether the alarm is in ALARM. The state depends only on the record, so that the next run of the platform
 * finds the same state.
 */
function hasFewer({ held }: DocumentMemory): boolean {
  const document = [...held.values()].find(({ kind }) => kind === "endpoint");
  if (document === undefined) return false;
  const { generations } = JSON.parse(document.body) as EndpointRecord;
  return generations[0].variants.some(({ settled, observed }) => observed.instanceCount < settled.instanceCount);
}

const sleeping = variant("less", {
  InitialInstanceCount: 0,
  InstanceType: "serverless",
  ServerlessConfig: { MemorySizeInMB: 1024, MaxConcurrency: 5 },
});

async function configured(bench: TrafficFixture): Promise<void> {
  await bench.configure(name, [variant("one", { mayFalter: true })]);
  await bench.configure("two", [variant("two")]);
  await bench.configure("three", [variant("three")]);
  await bench.configure("broken", [variant("broken", { isBroken: true })]);
  await bench.configure("less", [sleeping]);
}

const create = (bench: TrafficFixture, configName = name) =>
  bench.hosting.endpoints.create({ name, configName, owner, tags: [{ Key: "k", Value: "v" }], deploymentConfig: null });

const created =
  (configName = name) =>
  async (bench: TrafficFixture): Promise<void> => {
    await configured(bench);
    await create(bench, configName);
    await bench.settled(name);
  };

const stopped = async (bench: TrafficFixture): Promise<void> => {
  await created()(bench);
  await bench.hosting.endpoints.stop(name, owner);
};

/** Starts an update that is rolled back. The rollback fails, because the old instances do not start again. */
const updateInVain = async (bench: TrafficFixture): Promise<void> => {
  bench.falter(true);
  await bench.update(name, "two", { deploymentConfig: alarmed });
};

const mixed: Found = { ...at("UpdateRollbackFailed", name, "one two"), responses: "two" };

const stuck = async (bench: TrafficFixture): Promise<void> => {
  await created()(bench);
  await updateInVain(bench);
  await bench.settled(name);
};

const resize = (bench: TrafficFixture, instanceCount: number) =>
  bench.hosting.endpoints.resize(name, [{ variantName: "v", instanceCount }], owner);

const remove = (bench: TrafficFixture) => bench.hosting.endpoints.delete(name, owner);

const rows: readonly RecordedTransition<TrafficFixture, Found>[] = [
  {
    what: "it is created",
    given: configured,
    request: (bench) => create(bench),
    end: at("InService", name, "one one"),
    writesMin: 2,
  },
  {
    what: "an endpoint is created with a model that does not start",
    given: configured,
    request: (bench) => create(bench, "broken"),
    end: at("Failed", "broken"),
    writesMin: 2,
  },
  {
    what: "it is updated all at once",
    given: created(),
    request: (bench) => bench.update(name, "two"),
    end: at("InService", "two", "two two"),
    writesMin: 3,
  },
  {
    what: "it is updated as a canary",
    given: created(),
    request: (bench) => bench.update(name, "two", { deploymentConfig: traffic("CANARY") }),
    end: at("InService", "two", "two two"),
    writesMin: 5,
  },
  {
    what: "it is updated in linear steps",
    given: created(),
    request: (bench) => bench.update(name, "two", { deploymentConfig: traffic("LINEAR") }),
    end: at("InService", "two", "two two"),
    writesMin: 5,
  },
  {
    what: "it is updated in batches",
    given: created(),
    request: (bench) => bench.update(name, "two", { deploymentConfig: rolling }),
    end: at("InService", "two", "two two"),
    writesMin: 5,
  },
  {
    what: "an endpoint is updated to a model that does not start, and rolled back",
    given: created(),
    request: (bench) => bench.update(name, "broken", { deploymentConfig: rolling }),
    end: at("InService", name, "one one"),
    writesMin: 4,
  },
  {
    what: "it is updated and rolled back, which fails",
    given: created(),
    request: updateInVain,
    end: mixed,
    writesMin: 5,
  },
  {
    what: "it is updated after a roll-back that failed, while what it could not go back to still does not start",
    given: stuck,
    request: (bench) => bench.update(name, "three"),
    end: at("InService", "three", "three three"),
    writesMin: 3,
  },
  {
    what: "an update supersedes another one",
    given: created(),
    async request(bench) {
      await bench.update(name, "two", { deploymentConfig: rolling });
      await bench.update(name, "three", { deploymentConfig: rolling });
    },
    orElse: [at("InService", "two", "two two")],
    end: at("InService", "three", "three three"),
    writesMin: 5,
  },
  {
    what: "it is updated, and keeps the sizes that it had",
    async given(bench) {
      await created()(bench);
      await resize(bench, 1);
    },
    request: (bench) => bench.update(name, "two", { retained: new Set(["DesiredInstanceCount"] as const) }),
    end: at("InService", "two", "two"),
    writesMin: 3,
  },
  {
    what: "it is resized",
    given: created(),
    request: (bench) => resize(bench, 1),
    end: at("InService", name, "one"),
    writesMin: 3,
  },
  {
    what: "it is stopped",
    given: created(),
    request: (bench) => bench.hosting.endpoints.stop(name, owner),
    end: at("OutOfService", name),
    writesMin: 1,
  },
  {
    what: "it is stopped after a roll-back that failed",
    given: stuck,
    request: (bench) => bench.hosting.endpoints.stop(name, owner),
    end: at("OutOfService", name),
    writesMin: 1,
  },
  {
    what: "it is started again",
    given: stopped,
    request: (bench) => bench.hosting.endpoints.start(name, owner),
    end: at("InService", name, "one one"),
    writesMin: 2,
  },
  {
    what: "it is created serverless",
    given: configured,
    request: (bench) => create(bench, "less"),
    end: at("InService", "less", "less"),
    writesMin: 2,
  },
  {
    what: "it goes from instances to serverless",
    given: created(),
    request: (bench) => bench.update(name, "less"),
    end: at("InService", "less", "less"),
    writesMin: 3,
  },
  {
    what: "it goes from serverless to instances",
    given: created("less"),
    request: (bench) => bench.update(name, "two"),
    end: at("InService", "two", "two two"),
    writesMin: 3,
  },
  {
    what: "a serverless endpoint is kept warm",
    given: created("less"),
    request: (bench) =>
      bench.hosting.endpoints.resize(name, [{ variantName: "v", concurrency: { provisioned: 1 } }], owner),
    end: at("InService", "less", "less"),
    writesMin: 2,
  },
  { what: "it is deleted", given: created(), request: remove, end: removed, writesMin: 2 },
  { what: "it is deleted while it has failed", given: created("broken"), request: remove, end: removed, writesMin: 2 },
  { what: "it is deleted while it is stopped", given: stopped, request: remove, end: removed, writesMin: 2 },
  { what: "it is deleted after a roll-back that failed", given: stuck, request: remove, end: removed, writesMin: 2 },
  {
    what: "it is deleted while it is created",
    given: configured,
    async request(bench) {
      await create(bench);
      await remove(bench);
    },
    orElse: [at("InService", name, "one one")],
    end: removed,
    writesMin: 3,
  },
  {
    what: "it is deleted while it is updated",
    given: created(),
    async request(bench) {
      await bench.update(name, "two", { deploymentConfig: rolling });
      await remove(bench);
    },
    orElse: [at("InService", "two", "two two")],
    end: removed,
    writesMin: 3,
  },
];

recordedTransitionsContract<TrafficFixture, boolean, Found, EndpointEvent["kind"]>({
  name: "endpoint",
  kinds: ["endpoint"],
  open: (memory, isFaltering) =>
    TrafficFixture.open(memory, null, {
      isFaltering: isFaltering ?? false,
      alarmState: (alarm) => (alarm === fewer ? (hasFewer(memory) ? "ALARM" : "OK") : null),
    }),
  outside: ({ isFaltering }) => isFaltering,
  settled: (bench) => bench.settled(name),
  found,
  steps: {
    ready: ["it is created", "it is created serverless"],
    failed: [
      "an endpoint is created with a model that does not start",
      "an endpoint is updated to a model that does not start, and rolled back",
      "it is updated and rolled back, which fails",
    ],
    update: [
      "it is updated all at once",
      "it is updated as a canary",
      "it is updated in linear steps",
      "it is updated in batches",
      "it is updated after a roll-back that failed, while what it could not go back to still does not start",
      "an update supersedes another one",
      "it is updated, and keeps the sizes that it had",
      "it goes from instances to serverless",
      "it goes from serverless to instances",
    ],
    reached: ["it is updated in batches"],
    advanced: ["it is updated in linear steps"],
    resize: ["it is resized", "a serverless endpoint is kept warm"],
    stop: ["it is stopped", "it is stopped after a roll-back that failed"],
    start: ["it is started again"],
    delete: [
      "it is deleted",
      "it is deleted while it has failed",
      "it is deleted while it is stopped",
      "it is deleted after a roll-back that failed",
      "it is deleted while it is created",
      "it is deleted while it is updated",
    ],
  },
  rows,
  atOnce: 4,
});
