import assert from "node:assert/strict";
import { test } from "node:test";
import { echo, model, oneInOneOut, openFixture, until } from "./python-fixture.ts";

test("instances on GPUs get their device id, and a missing GPU is rejected", async () => {
  const log: string[] = [];
  const requested: (readonly number[])[] = [];
  await using onGpus = await openFixture({
    gpuCount: 3,
    gpuBytesOf: (pids) => {
      requested.push(pids);
      return Promise.resolve(new Map([["gpu 2", 7]]));
    },
    print: (line) => log.push(line),
  });
  const source = model(
    echo,
    "    def initialize(self, args): print(args['model_instance_name'], args['model_instance_kind'], args['model_instance_device_id'])\n",
  );
  const groups = "instance_group [{ kind: KIND_GPU gpus: [ 2, 0 ] }, { kind: KIND_CPU }]";
  await using loaded = await onGpus.load("placed", source, oneInOneOut("TYPE_FP32", groups));
  assert.deepEqual(
    loaded.instances.map(({ name }) => name),
    ["placed_0_0", "placed_0_0", "placed_1_0"],
  );
  const pids = loaded.instances.map((instance) => (instance as unknown as { pid: number }).pid);
  assert.equal((await loaded.memoryBytes()).get("gpu 2"), 7);
  // The workers start concurrently, therefore any of them may be the first.
  assert.deepEqual(
    requested.map((each) => new Set(each)),
    [new Set(pids)],
    "memory of its own processes",
  );
  await using onCpu = await onGpus.load(
    "elsewhere",
    source,
    oneInOneOut("TYPE_FP32", "instance_group { kind: KIND_CPU }"),
  );
  assert.deepEqual([...(await onCpu.memoryBytes()).keys()], ["machine"]);
  assert.equal(requested.length, 1, "a model on the CPU causes no query");
  await until(() => log.length === 4);
  assert.deepEqual(log.toSorted().slice(1), ["placed_0_0 GPU 0", "placed_0_0 GPU 2", "placed_1_0 CPU 0"]);
  await assert.rejects(
    onGpus.load("absent", source, oneInOneOut("TYPE_FP32", "instance_group { kind: KIND_GPU gpus: [ 3 ] }")),
    { code: "INVALID_ARG", message: /specifies invalid or unsupported gpu id 3/ },
  );
});
