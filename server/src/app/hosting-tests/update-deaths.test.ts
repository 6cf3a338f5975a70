/** A platform that ends after any of the writes of an endpoint's moves: the next one comes to the same end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeploymentConfig } from "../../hosting/index.ts";
import { owner } from "./hosting-fixture.ts";
import { RememberedMemory } from "./remembered-memory-fixture.ts";
import { TrafficBench, until } from "./traffic-fixture.ts";

const name = "mortal";

const half = { Type: "CAPACITY_PERCENT", Value: 50 } as const;
const canary: DeploymentConfig = {
  BlueGreenUpdatePolicy: {
    TrafficRoutingConfiguration: { Type: "CANARY", WaitIntervalInSeconds: 0.02, CanarySize: half },
  },
};
const rolling: DeploymentConfig = { RollingUpdatePolicy: { MaximumBatchSize: half, WaitIntervalInSeconds: 0.02 } };
const isOne = "one one";

/** What is done with an endpoint of two instances, to what it comes, and how often its record is written for that at least. */
const moves: readonly {
  readonly what: string;
  readonly begin: (bench: TrafficBench) => Promise<unknown>;
  readonly end: readonly [at: string, configName: string];
  readonly running: string;
  readonly writesMin: number;
}[] = [
  {
    what: "is created",
    begin: async () => {},
    end: ["InService", name],
    running: isOne,
    writesMin: 2,
  },
  {
    what: "is updated as a canary",
    begin: (bench) => bench.update(name, "two", { deploymentConfig: canary }),
    end: ["InService", "two"],
    running: "two two",
    writesMin: 5,
  },
  {
    what: "is updated in batches",
    begin: (bench) => bench.update(name, "two", { deploymentConfig: rolling }),
    end: ["InService", "two"],
    running: "two two",
    writesMin: 5,
  },
  {
    what: "is updated to what does not start, and rolled back",
    begin: (bench) => bench.update(name, "broken", { deploymentConfig: rolling }),
    end: ["InService", name],
    running: isOne,
    writesMin: 4,
  },
  {
    what: "is resized",
    begin: (bench) => bench.hosting.endpoints.resize(name, [{ variantName: "v", instanceCount: 1 }], owner),
    end: ["InService", name],
    running: "one",
    writesMin: 3,
  },
  {
    what: "is stopped",
    begin: (bench) => bench.hosting.endpoints.stop(name, owner),
    end: ["OutOfService", name],
    running: "",
    writesMin: 1,
  },
];

for (const { what, begin, end, running, writesMin } of moves) {
  test(`a platform that ends while an endpoint ${what} is followed by one that comes to the same end, after each write`, async () => {
    const memory = new RememberedMemory("endpoint");
    const isEnd = async (bench: TrafficBench) => {
      await bench.settled(name);
      assert.deepEqual((await bench.status(name)).slice(0, 2), end);
      await until("what runs is what is to run", () => bench.running().toSorted().join(" ") === running);
      if (running !== "") assert.equal((await bench.ask(name, "x")).container, running.split(" ")[0]);
    };
    {
      await using bench = await TrafficBench.open(memory);
      await bench.configure("two", [{ name: "two", VariantName: "v", InitialInstanceCount: 2 }]);
      await bench.configure("broken", [{ name: "broken", VariantName: "v", InitialInstanceCount: 2, isBroken: true }]);
      if (what === "is created") memory.lives.length = 0;
      await bench.deploy(name, [{ name: "one", VariantName: "v", InitialInstanceCount: 2 }]);
      if (what !== "is created") memory.lives.length = 0;
      await begin(bench);
      await isEnd(bench);
    }
    assert.ok(memory.lives.length >= writesMin, `${memory.lives.length} writes`);
    const lives = memory.lives.map(async (life) => {
      await using bench = await TrafficBench.open(life);
      await isEnd(bench);
    });
    await Promise.all(lives);
  });
}

test("a platform that ends while an endpoint is deleted is followed by one that deletes it", async () => {
  const memory = new RememberedMemory("endpoint");
  {
    await using bench = await TrafficBench.open(memory);
    await bench.deploy(name, [{ name: "one" }]);
    memory.lives.length = 0;
    await bench.hosting.endpoints.delete(name, owner);
    await bench.settled(name);
  }
  assert.equal(memory.lives.length, 1);
  for (const life of memory.lives) {
    await using bench = await TrafficBench.open(life);
    await bench.settled(name);
    await assert.rejects(bench.status(name), /Could not find endpoint/);
    assert.deepEqual(bench.running(), []);
  }
});
