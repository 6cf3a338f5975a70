/** A platform that is killed after any write of a move of scaling: the next one comes to the same end, and nothing is left over. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { alarmLimits, Alarms } from "../alarms/index.ts";
import { silentLogger, type Clock } from "../base/index.ts";
import { DocumentMemory, MemoryDocuments } from "../records/index.ts";
import { Scaling, scalingLimits, type ResourceCapacity, type ScalableTarget, type TrackingPolicy } from "./index.ts";

const minuteMs = 60_000;
const startMs = Date.UTC(2026, 10, 22);
const resourceId = "endpoint/e/variant/v";
const dimension = "sagemaker:variant:DesiredInstanceCount";
const key = { resourceId, dimension };
const never = new AbortController().signal;

const target: ScalableTarget = {
  ...key,
  arn: "arn:aws:application-autoscaling:r:1:scalable-target/1",
  roleArn: "",
  createdMs: startMs,
  minCapacity: 1,
  maxCapacity: 5,
  suspended: { scaleIn: false, scaleOut: false, scheduled: false },
  tags: {},
};
const metric = { namespace: "AWS/SageMaker", metricName: "InvocationsPerInstance", dimensions: [] };
const policy: TrackingPolicy = {
  ...key,
  name: "p",
  arn: `arn:aws:autoscaling:r:1:scalingPolicy:1:resource/sagemaker/${resourceId}:policyName/p`,
  createdMs: startMs,
  type: "TargetTrackingScaling",
  targetValue: 100,
  watched: { kind: "metric", metric, statistic: "Sum", unit: null, periodMs: minuteMs },
  isZeroWhenMissing: true,
  scaleOutCooldownMs: 0,
  scaleInCooldownMs: 0,
  isScaleInDisabled: false,
  configuration: {},
  highAlarm: "high",
  lowAlarm: "low",
};
const alarmArn = (name: string) => `arn:aws:cloudwatch:r:1:alarm:${name}`;

/** What was on disk, and what ran, after a write. */
interface Life {
  readonly memory: DocumentMemory;
  readonly capacity: number;
  readonly nowMs: number;
}

class World implements AsyncDisposable {
  readonly lives: Life[] = [];
  readonly memory: DocumentMemory;
  readonly scaleCalls: number[] = [];
  alarms!: Alarms;
  scaling!: Scaling;
  capacity: number;
  nowMs: number;
  /** Of all instances together, in every minute. */
  load = 100;

  constructor({ memory, capacity, nowMs }: Life) {
    this.memory = memory;
    this.capacity = capacity;
    this.nowMs = nowMs;
  }

  static async open(life: Life): Promise<World> {
    const world = new World(life);
    world.#remember();
    const clock: Clock = {
      epochMs: () => world.nowMs,
      monotonicNs: () => world.nowMs * 1e6,
      timer: () => ({ [Symbol.dispose]() {} }),
    };
    const documents = new MemoryDocuments(world.memory);
    const readValues = (_: unknown, range: { readonly startMs: number; readonly endMs: number }) => {
      const values = new Map<number, number>();
      for (let at = range.startMs; at < range.endMs; at += minuteMs) values.set(at, world.load / world.capacity);
      return Promise.resolve(values);
    };
    const common = { documents, readValues, clock, logger: silentLogger };
    world.alarms = await Alarms.open({
      ...common,
      limits: alarmLimits,
      actions: (arn) => world.scaling.action(arn),
    });
    const resources = {
      capacity: (): Promise<ResourceCapacity> =>
        Promise.resolve({ desired: world.capacity, running: world.capacity, isMoving: false }),
      scale: (_: string, to: number) => {
        world.scaleCalls.push(to);
        world.capacity = to;
        return Promise.resolve({ done: Promise.resolve() });
      },
    };
    let count = 0;
    const newId = () => `${world.nowMs}-${(count += 1)}`;
    world.scaling = await Scaling.open({ ...common, alarms: world.alarms, resources, newId, limits: scalingLimits });
    return world;
  }

  /** Three quarters of an hour in which alarms are looked at. */
  async live(): Promise<void> {
    for (let tick = 0; tick < 270; tick++) {
      this.nowMs += 10_000;
      await this.alarms.look(never);
      await this.alarms.acted();
      await this.scaling.settled();
      await this.scaling.runScheduled();
    }
  }

  /** What there is, and that nothing is left over or half done. */
  state() {
    const records = this.scaling.list();
    const policies = records.flatMap((record) => record.policies);
    const wanted = policies.flatMap((each) => (each.type === "StepScaling" ? [] : [each.highAlarm, each.lowAlarm]));
    const alarms = this.alarms.list().map(({ definition }) => definition.name);
    assert.deepEqual(
      alarms.toSorted(),
      wanted.filter((name) => name !== null).toSorted(),
      "alarms are the policies' own",
    );
    for (const { activities } of records) assert.ok(activities.every(({ status }) => status !== "InProgress"));
    return { targets: records.length, policies: policies.map(({ name }) => name), capacity: this.capacity };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scaling[Symbol.asyncDispose]();
    await this.alarms[Symbol.asyncDispose]();
  }

  #remember(): void {
    const { held } = this.memory;
    const remember = () => this.lives.push({ memory: copyOf(this.memory), capacity: this.capacity, nowMs: this.nowMs });
    const [set, remove] = [held.set.bind(held), held.delete.bind(held)];
    held.set = (id, document) => {
      set(id, document);
      remember();
      return held;
    };
    held.delete = (id) => {
      const was = remove(id);
      remember();
      return was;
    };
  }
}

function copyOf({ held, version }: DocumentMemory): DocumentMemory {
  const copy = new DocumentMemory();
  for (const [id, document] of held) copy.held.set(id, document);
  copy.version = version;
  return copy;
}

type Done = ReturnType<World["state"]>;

const none: Done = { targets: 0, policies: [], capacity: 1 };
const registered: Done = { ...none, targets: 1 };
const following: Done = { ...registered, policies: ["p"] };

/** What is done, from what, and what may be the end of it: what had been acknowledged before, or all of it. */
const moves: readonly {
  readonly what: string;
  readonly given?: (world: World) => Promise<void>;
  readonly move: (world: World) => Promise<void>;
  readonly ends: readonly Done[];
  readonly writesMin: number;
}[] = [
  {
    what: "a target is registered",
    move: (world) => world.scaling.register(target),
    ends: [none, registered],
    writesMin: 1,
  },
  {
    what: "a target is registered above what there is",
    move: (world) => world.scaling.register({ ...target, minCapacity: 3 }),
    // Its bounds are corrected when they are set: one that died before has what there was.
    ends: [none, registered, { ...registered, capacity: 3 }],
    writesMin: 3,
  },
  {
    what: "a policy is put",
    given: (world) => world.scaling.register(target),
    move: (world) => world.scaling.putPolicy(policy, alarmArn),
    ends: [registered, following],
    writesMin: 3,
  },
  {
    what: "a policy no longer scales in",
    given: followed,
    move: (world) => world.scaling.putPolicy({ ...policy, isScaleInDisabled: true, lowAlarm: null }, alarmArn),
    ends: [following],
    writesMin: 3,
  },
  {
    what: "a policy is deleted",
    given: followed,
    move: (world) => world.scaling.deletePolicy(policy),
    ends: [following, registered],
    writesMin: 3,
  },
  {
    what: "a target is deregistered",
    given: followed,
    move: (world) => world.scaling.deregister(key),
    ends: [following, none],
    writesMin: 3,
  },
  {
    what: "the load grows",
    given: followed,
    async move(world) {
      world.load = 400;
      await world.live();
    },
    ends: [{ ...following, capacity: 4 }],
    writesMin: 5,
  },
  {
    what: "the load is over",
    async given(world) {
      world.capacity = 4;
      world.load = 400;
      await followed(world);
      await world.live();
    },
    async move(world) {
      world.load = 100;
      await world.live();
    },
    ends: [following],
    writesMin: 3,
  },
];

async function followed(world: World): Promise<void> {
  await world.scaling.register(target);
  await world.scaling.putPolicy(policy, alarmArn);
}

for (const { what, given, move, ends, writesMin } of moves) {
  test(`${what}: killed after any of its writes, the platform ends right`, async () => {
    await using first = await World.open({ memory: new DocumentMemory(), capacity: 1, nowMs: startMs });
    await given?.(first);
    const before = first.lives.length;
    await move(first);
    await first.scaling.settled();
    assert.ok(
      ends.some((end) => isSame(end, first.state())),
      JSON.stringify(first.state()),
    );
    const lives = first.lives.slice(before);
    assert.ok(lives.length >= writesMin, `${lives.length} writes`);
    for (const [index, life] of lives.entries()) {
      await using next = await World.open({ ...life, memory: copyOf(life.memory) });
      next.load = first.load;
      next.state();
      await next.live();
      const found = next.state();
      assert.ok(
        ends.some((end) => isSame(end, found)),
        `after write ${index + 1} of ${lives.length}: ${JSON.stringify(found)}`,
      );
      assert.ok(next.scaleCalls.every((to) => to >= 1 && to <= 5));
    }
  });
}

function isSame(a: Done, b: Done): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
