/** The backend `tensorflow`, compared with TensorFlow's own results in the process that made the model. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { eventually } from "../../packages/base/src/core/eventually-fixture.ts";
import { promisify } from "node:util";
import {
  assertClose,
  floats,
  haveShared,
  infer,
  responds,
  load,
  numbers,
  openFramework,
  privateBytesOf,
  workerOf,
  type FrameworkFixture,
} from "./framework-fixture.ts";

let fixture: FrameworkFixture;
before(async () => {
  fixture = await openFramework("tensorflow");
});
after(() => fixture[Symbol.asyncDispose]());

async function configOf(model: string) {
  const response = await fetch(`http://127.0.0.1:${fixture.server.httpPort}/v2/models/${model}/config`);
  return (await response.json()) as {
    max_batch_size: number;
    dynamic_batching?: object;
    input: { name: string; data_type: string; dims: number[]; reshape?: { shape: number[] } }[];
    output: { name: string; data_type: string; dims: number[]; reshape?: { shape: number[] } }[];
  };
}

test("further TensorFlow models are forks of the first: their loads import nothing", async () => {
  const ms: number[] = [];
  for (const model of ["same", "doubled", "encoder"]) {
    const began = performance.now();
    assert.equal(await load(fixture.server, model), null);
    ms.push(performance.now() - began);
  }
  const [first, ...further] = ms;
  // The fastest load counts, because a busy machine may delay any of them.
  assert.ok(Math.min(...further) < first! / 3, `loads took ${ms.map(Math.round).join(", ")} ms`);
});

test("a SavedModel needs no config.pbtxt: max_batch_size, tensors and the scheduler are completed", async () => {
  const tensor = ({ name, data_type: type, dims }: { name: string; data_type: string; dims: number[] }) => ({
    name,
    type,
    dims,
  });
  assert.equal(await load(fixture.server, "encoder"), null);
  const found = await configOf("encoder");
  assert.equal(found.max_batch_size, 4);
  assert.ok(found.dynamic_batching !== undefined);
  assert.deepEqual(found.input.map(tensor), [
    { name: "mask", type: "TYPE_FP32", dims: [-1] },
    { name: "tokens", type: "TYPE_INT32", dims: [-1] },
  ]);
  assert.deepEqual(
    found.output.map(({ name, reshape }) => [name, reshape?.shape]),
    [
      ["lengths", []],
      ["pooled", undefined],
    ],
  );
  assert.equal(await load(fixture.server, "unbatched"), null);
  const unbatched = await configOf("unbatched");
  assert.deepEqual(
    [unbatched.max_batch_size, unbatched.input[0]!.dims, unbatched.dynamic_batching],
    [0, [2, 2], undefined],
  );
  assert.equal(await load(fixture.server, "hinted"), null);
  assert.equal((await configOf("hinted")).max_batch_size, 0);
  assert.equal(await load(fixture.server, "one_output"), null);
  assert.deepEqual((await configOf("one_output")).output.map(tensor), [{ name: "side", type: "TYPE_FP32", dims: [2] }]);
});

test("every TensorFlow model returns what TensorFlow computes, alone and in a batch", async () => {
  const models = [...new Set(fixture.cases.map(({ model }) => model))];
  for (const model of models) assert.equal(await load(fixture.server, model), null, model);
  await Promise.all(fixture.cases.map((one) => responds(fixture, one)));
  for (const one of fixture.cases) await responds(fixture, one);
});

test("the requests of one batch share one session run", async () => {
  const picture = (rows: number) =>
    floats(
      "input",
      Array.from({ length: rows * 96 * 96 * 3 }, (_, at) => ((at * 7919) % 1000) / 1000),
      [rows, 96, 96, 3],
    );
  const alone = await infer(fixture.server, "inception", [picture(2)], ["Identity"]);
  const request = () =>
    Promise.all([2, 1, 3].map((rows) => infer(fixture.server, "inception", [picture(rows)], ["Identity"])));
  const replies = await request();
  assert.deepEqual(
    replies.map(({ outputs }) => outputs.get("Identity")!.shape),
    [
      [2, 1001],
      [1, 1001],
      [3, 1001],
    ],
  );
  assertClose(replies[0]!.outputs.get("Identity")!.data, alone.outputs.get("Identity")!.data, "in a batch");
  // Only requests that arrive within 20 ms share a batch, which on a busy machine needs several tries.
  await eventually(async () => (await haveShared(fixture, "inception")) || (await request(), false));
});

test("a graph may overwrite its input, every request still gets its own data, and constants keep their values", async () => {
  const values = Array.from({ length: 2000 }, (_, index) => index);
  assert.equal(await load(fixture.server, "both"), null);
  for (let run = 0; run < 3; run++) {
    const reply = await infer(fixture.server, "both", [floats("GIVEN", values)], ["WRITTEN", "SAME"]);
    assert.equal(reply.error, undefined);
    assert.deepEqual([...numbers(reply.outputs.get("WRITTEN")!.data)], [-1, ...values.slice(1)]);
    assert.deepEqual([...numbers(reply.outputs.get("SAME")!.data)], values);
  }
  assert.equal(await load(fixture.server, "constant"), null);
  for (let run = 0; run < 3; run++) {
    const reply = await infer(fixture.server, "constant", [floats("x", [run])], ["constant"]);
    const found = numbers(reply.outputs.get("constant")!.data);
    assert.ok(found.length === 20_000 && found.every((one, at) => one === at));
  }
});

test("several versions are served at the same time, each by two instances by default", async () => {
  assert.equal(await load(fixture.server, "versions"), null);
  const url = `http://127.0.0.1:${fixture.server.httpPort}/v2/models/versions`;
  const responseCount = await Promise.all(
    [1, 7].map(async (version) => {
      const input = { name: "x", datatype: "FP32", shape: [1, 2], data: [1, 2] };
      const body = JSON.stringify({ inputs: [input], outputs: [{ name: "y" }] });
      const response = await fetch(`${url}/versions/${version}/infer`, { method: "POST", body });
      return ((await response.json()) as { outputs: { data: number[] }[] }).outputs[0]!.data;
    }),
  );
  assert.deepEqual(responseCount, [
    [2, 4],
    [3, 6],
  ]);
  const { stdout } = await promisify(execFile)("ps", ["-e", "-ww", "-o", "ppid=,args="]);
  const workers = stdout.split("\n").filter((line) => line.includes(join(fixture.repository, "versions", "7")));
  assert.equal(workers.filter((line) => line.trim().startsWith(`${fixture.server.pid} `)).length, 2);
});

/** Limits of a model's private memory after its first requests, in MB, in addition to a multiple of its file. */
const costs: readonly [model: string, megabytes: number, file: string, timesFile: number][] = [
  ["same", 40, "model.graphdef", 1],
  ["encoder", 40, "model.savedmodel/variables/variables.data-00000-of-00001", 1],
  // TensorFlow itself would keep five copies of a graph's constants.
  ["inception", 60, "model.graphdef", 2.2],
];

for (const [model, megabytes, file, timesFile] of costs)
  test(`each additional model takes at most ${megabytes} MB and ${timesFile} times its file: ${model}`, async (t) => {
    assert.equal(await load(fixture.server, model), null);
    for (const one of fixture.cases.filter((each) => each.model === model)) await responds(fixture, one);
    await responds(
      fixture,
      fixture.cases.find((each) => each.model === model)!,
    );
    const weights = (await stat(join(fixture.repository, model, "1", file))).size;
    const own = ((await privateBytesOf(fixture, model)) - timesFile * weights) / 1e6;
    t.diagnostic(`${Math.round(own)} MB in addition to ${timesFile} times ${(weights / 1e6).toFixed(1)} MB`);
    assert.ok(own < megabytes, `${own} MB in addition to ${weights / 1e6} MB`);
  });

const refusals: readonly [model: string, sentence: string | RegExp][] = [
  [
    "load_signature",
    "unable to auto-complete model configuration for 'load_signature', failed to load model: unable to load model 'load_signature', expected 'none' signature",
  ],
  [
    "load_dims",
    "model 'load_dims', tensor 'x': the model expects 2 dimensions (shape [-1,2]) but the model configuration specifies 2 dimensions " +
      "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,3])",
  ],
  [
    "load_type",
    "unable to load model 'load_type', configuration expects datatype TYPE_INT32 for input 'x', model provides TYPE_FP32",
  ],
  ["load_name", "unexpected inference output 'z', allowed outputs are: side, y"],
  ["load_tag", /failed to load model: Could not find meta graph def matching supplied tags: \{ train \}/],
  ["load_boolean", "failed to convert 'yes' to boolean"],
  ["load_threads", "parameter 'TF_NUM_INTRA_THREADS' must be non-negative number for TensorFlow model 'load_threads'"],
  ["load_integer", "failed to convert 'two' to integral number"],
  ["load_share", "parameter 'MAX_SESSION_SHARE_COUNT' must be positive number for TensorFlow model 'load_share'"],
  [
    "load_unbatched",
    "unable to autofill for 'load_unbatched', configuration specified max-batch 4 but model signature does not support batching",
  ],
  ["load_init", /^failed to open text file for read .*\/load_init\/absent.json: No such file or directory$/],
  ["load_absent", /^unable to find '.*\/load_absent\/1\/model.savedmodel' for model instance 'load_absent_0'$/],
  ["load_empty", /Could not find SavedModel .pb or .pbtxt at supplied export directory path: .*model.savedmodel$/],
  ["load_graph_input", "unexpected inference input 'same', allowed inputs are: factor, x"],
  ["load_graph_output", /^unexpected inference output 'none', allowed outputs are: .*complex, constant, /],
  [
    "load_graph_type",
    "unable to load model 'load_graph_type', configuration expects datatype TYPE_INT32 for input 'x', model provides TYPE_FP32",
  ],
  [
    "load_graph_many",
    "unable to load model 'load_graph_many', configuration expects 3 inputs, model provides at most 2",
  ],
  ["load_graph_bf16", "unsupported datatype 'TYPE_BF16' for tensor 'brain' for model 'load_graph_bf16'"],
  ["load_graph_complex", /configuration expects datatype TYPE_FP32 for output 'complex', model provides DT_COMPLEX64$/],
  ["load_graph_empty", "model load_graph_empty has an empty network"],
  ["load_accelerator", "CPU Execution Accelerator is not supported in TensorFlow backend"],
];

for (const [model, sentence] of refusals)
  test(`${model}: the load fails with the expected error`, async () => {
    const error = await load(fixture.server, model);
    assert.notEqual(error, null);
    const own = error!
      .replace(/^load failed for model '[^']*': version 1 is at UNAVAILABLE state: (\w+: )?/, "")
      .replace(/;\n?$/, "");
    if (typeof sentence === "string") assert.equal(own, sentence);
    else assert.match(own, sentence);
  });

const failures: readonly [
  model: string,
  output: string,
  values: readonly number[],
  shape: readonly number[],
  sentence: RegExp,
][] = [
  ["checked", "checked", [1000], [1], /assertion failed: \[too large:\] \[1000\]/],
  ["uninitialized", "y", [1, 1], [1, 2], /^Could not find variable factor. This could mean/],
  ["wrong_rows", "row", [1, 2], [2, 1], /^output 'row' has 1 rows for a batch of 2$/],
];

for (const [model, output, values, shape, sentence] of failures)
  test(`${model}: the request fails with the expected error, and the worker stays: ${String(sentence)}`, async () => {
    assert.equal(await load(fixture.server, model), null);
    const before = await workerOf(fixture, model);
    const reply = await infer(fixture.server, model, [floats("x", values, shape)], [output]);
    assert.match(reply.error!, sentence);
    assert.equal(reply.status, 500);
    assert.equal(await workerOf(fixture, model), before);
  });

test("ragged batches run inputs of any length together, pass batch inputs that describe them, and split the outputs", async () => {
  for (const model of ["ragged", "ragged_graph"]) assert.equal(await load(fixture.server, model), null);
  // A batch runs when it is full, so each of the four requests gets the lengths of all.
  const rows = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10, 11]];
  const request = (model: string, outputs: readonly string[]) =>
    Promise.all(rows.map((row) => infer(fixture.server, model, [floats("values", row, [1, row.length])], outputs)));
  const replies = await request("ragged", ["sums", "told", "doubled"]);
  for (const [index, { error, outputs }] of replies.entries()) {
    assert.equal(error, undefined);
    const row = rows[index]!;
    const found = (name: string) => [outputs.get(name)!.shape, [...numbers(outputs.get(name)!.data)]];
    assert.deepEqual(found("sums"), [[1, 1], [row.reduce((sum, one) => sum + one, 0)]]);
    assert.deepEqual(found("told"), [
      [1, 3],
      [row.length, row.length, 5],
    ]);
    assert.deepEqual(found("doubled"), [[1, row.length], row.map((one) => 2 * one)]);
  }
  // The output is the running sum up to each request, which depends on the order in which the four arrived.
  const reported = (await request("ragged_graph", ["told"])).map(({ outputs }) => [
    ...numbers(outputs.get("told")!.data),
  ]);
  assert.equal(Math.max(...reported.map(([sum]) => sum!)), 66);
  assert.deepEqual(
    reported.map(([, length]) => length),
    [3, 1, 2, 5],
  );
  assert.match(
    (await load(fixture.server, "load_ragged_name"))!,
    /unexpected inference input 'lengths', allowed inputs are: counts, longest, shapes, splits, values/,
  );
});

test("constants of a SavedModel are in memory less than four times (TensorFlow keeps seven copies)", async () => {
  for (const model of ["same", "frozen", "frozen_compiled"]) assert.equal(await load(fixture.server, model), null);
  for (const one of fixture.cases.filter(({ model }) => model.startsWith("frozen"))) await responds(fixture, one);
  const weights = 2048 * 2048 * 4;
  const own = (await privateBytesOf(fixture, "frozen")) - (await privateBytesOf(fixture, "same"));
  assert.ok(own < 4 * weights, `${(own / weights).toFixed(1)} times`);
});
