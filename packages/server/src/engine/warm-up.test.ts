import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { InferenceError, silentLogger, systemClock } from "@galatea/base";
import { noParameters, type InferenceRequest, type Instance, type Outcome } from "../inference/index.ts";
import { completeConfig, parseConfigText } from "../modelconfig/index.ts";
import { createArena } from "../tensor/index.ts";
import { warmUp, type WarmUpOptions } from "./warm-up.ts";

const io = 'backend: "b" max_batch_size: 4 input { name: "X" data_type: TYPE_INT8 dims: 2 }';
const sample = (data: string, more = "batch_size: 1") =>
  `model_warmup { name: "s" ${more} inputs { key: "X" value { data_type: TYPE_INT8 dims: 2 ${data} } } }`;

async function orderFor(
  t: TestContext,
  samples: string,
  signal = new AbortController().signal,
): Promise<WarmUpOptions> {
  const modelDirectory = await mkdtemp(join(tmpdir(), "warm-up-"));
  const arena = createArena({ capacityBytes: 1 << 24 });
  t.after(async () => {
    assert.equal(arena.usedBytes, 0, "every block was released");
    arena[Symbol.dispose]();
    await rm(modelDirectory, { recursive: true });
  });
  const context = { directoryName: "m", servedName: "m", versionEntries: [], gpuCount: 0 };
  return {
    namespace: "",
    arena,
    source: { servedName: "m", modelDirectory, version: 1, versionDirectory: join(modelDirectory, "1") },
    config: completeConfig(parseConfigText(`${io} ${samples}`, "m"), context),
    clock: systemClock,
    log: silentLogger,
    fillRandom: (bytes) => bytes.fill(7),
    signal,
  };
}

function modelOf(...executions: ((batch: readonly InferenceRequest[]) => Promise<readonly Outcome[]>)[]) {
  const givenUp: InferenceRequest[] = [];
  const instances = executions.map((run, index): Instance => ({
    name: `m_${index}`,
    executionsMax: 1,
    supervision: null,
    abandonRequest: (request) => givenUp.push(request),
    execute: async (batch) => ({
      outcomes: await run(batch),
      computeInputNs: 1,
      computeInferNs: 2,
      computeOutputNs: 3,
    }),
  }));
  return {
    instances,
    givenUp,
    memoryBytes: () => Promise.resolve(new Map()),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

const responded = (batch: readonly InferenceRequest[]): readonly Outcome[] =>
  batch.map(() => ({ modelName: "m", modelVersion: "1", outputs: [], parameters: noParameters }));

test("every instance runs every sample, and its requests are counted one by one", async (t) => {
  const order = await orderFor(t, sample("random_data: true", "batch_size: 3 count: 2"));
  const seen: number[][][] = [];
  const see = (batch: readonly InferenceRequest[]) => {
    seen.push(batch.map(({ inputs }) => [...(inputs[0]?.data ?? [])]));
    return Promise.resolve(responded(batch));
  };
  const records = await warmUp(modelOf(see, see), order);
  const rows = [
    [7, 7],
    [7, 7],
    [7, 7],
  ];
  assert.deepEqual(seen, [rows, rows, rows, rows]);
  assert.equal(records.length, 12);
  assert.equal(records.filter((record) => record.countsExecution).length, 4);
});

test("a sample that fails on one instance fails the load with all of its errors", async (t) => {
  const order = await orderFor(t, sample("zero_data: true", "batch_size: 2"));
  const fails = (batch: readonly InferenceRequest[]) =>
    Promise.resolve(batch.map((_, i) => new InferenceError("INTERNAL", `no ${i}`)));
  await assert.rejects(
    warmUp(
      modelOf((batch) => Promise.resolve(responded(batch)), fails),
      order,
    ),
    {
      code: "INVALID_ARG",
      message: "failed to run warmup sample 's': no 0; no 1; ",
    },
  );
});

test("a sample that is not a valid request of the model is rejected like a request, and releases its memory", async (t) => {
  const order = await orderFor(
    t,
    sample("zero_data: true").replace("{ data_type: TYPE_INT8 dims: 2", "{ data_type: TYPE_INT8 dims: 3"),
  );
  const model = modelOf(() => Promise.reject(new Error("nothing runs")));
  await assert.rejects(warmUp(model, order), { code: "INVALID_ARG", message: /unexpected shape for input 'X'/ });
});

test("an aborted load cancels the execution and ends after it", async (t) => {
  const aborted = new AbortController();
  const order = await orderFor(t, sample("zero_data: true"), aborted.signal);
  const running = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const model = modelOf(async (batch) => {
    running.resolve();
    await end.promise;
    return responded(batch);
  });
  const warming = warmUp(model, order);
  await running.promise;
  aborted.abort(new InferenceError("UNAVAILABLE", "Server exiting"));
  assert.equal(model.givenUp.length, 1);
  end.resolve();
  await assert.rejects(warming, { message: "Server exiting" });
});

test("samples that would run for days or fill the memory are rejected", async (t) => {
  const model = modelOf(() => Promise.reject(new Error("nothing runs")));
  const days = await orderFor(t, sample("zero_data: true", "batch_size: 1 count: 4000000000"));
  await assert.rejects(warmUp(model, days), { code: "INVALID_ARG", message: /max allowed is 100000$/ });
  const order = await orderFor(t, sample("zero_data: true").replace("dims: 2", "dims: [1000000, 1000000]"));
  await assert.rejects(warmUp(model, order), { code: "UNAVAILABLE" });
});

test("a sample's file must be in the model's directory, whatever its name and links are", async (t) => {
  const model = modelOf((batch) => Promise.resolve(responded(batch)));
  const names = ["../../secret", "/secret", "link", "folder", "pipe\\000"];
  for (const name of names) {
    const order = await orderFor(t, sample(`input_data_file: "${name}"`));
    const folder = join(order.source.modelDirectory, "warmup");
    await mkdir(join(folder, "folder"), { recursive: true });
    await symlink("/etc/hostname", join(folder, "link"));
    await assert.rejects(warmUp(model, order), { code: "INTERNAL", message: /^failed to open text file for read / });
  }
  const order = await orderFor(t, sample('input_data_file: "a/data"'));
  await mkdir(join(order.source.modelDirectory, "warmup/a"), { recursive: true });
  await writeFile(join(order.source.modelDirectory, "warmup/a/data"), "xy");
  assert.equal((await warmUp(model, order)).length, 1);
});
