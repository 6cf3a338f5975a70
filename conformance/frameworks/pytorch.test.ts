/** The backend `pytorch` with real architectures; the truth is PyTorch's own forward in the same environment. */
import assert from "node:assert/strict";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  assertClose,
  floats,
  infer,
  isAnswered,
  load,
  numbers,
  openFramework,
  privateBytesOf,
  workerOf,
  type FrameworkFixture,
} from "./framework-fixture.ts";

let fixture: FrameworkFixture;
before(async () => {
  fixture = await openFramework("pytorch");
});
after(() => fixture[Symbol.asyncDispose]());

test("the second model of a framework is a fork: it takes no second import", async () => {
  const ms: number[] = [];
  for (const model of ["same", "listed", "encoder_exported"]) {
    const began = performance.now();
    assert.equal(await load(fixture.server, model), null);
    ms.push(performance.now() - began);
  }
  const [first, ...further] = ms;
  for (const one of further) assert.ok(one < first! / 3, `loads took ${ms.map(Math.round).join(", ")} ms`);
});

/** What a model that is loaded costs beside its weights, in MB of memory that is its worker's alone. */
const costs: readonly [model: string, megabytes: number][] = [
  ["same", 30],
  ["recurrent", 30],
  ["encoder", 30],
  ["resnet50", 30],
  // The graph of an exported program is interpreted in Python, whose objects count who refers to them and so are copied.
  ["encoder_exported", 45],
];

for (const [model, megabytes] of costs)
  test(`a further model costs at most ${megabytes} MB beside its weights: ${model}`, async () => {
    assert.equal(await load(fixture.server, model), null);
    const privateBytes = await privateBytesOf(fixture, model);
    const version = join(fixture.repository, model, "1");
    const [file] = await readdir(version);
    const weights = (await stat(join(version, file!))).size;
    const own = (privateBytes - weights) / 1e6;
    assert.ok(own < megabytes, `${own} MB beside ${weights / 1e6} MB of weights`);
  });

test("every model answers what PyTorch itself computes, alone and beside others in a batch", async () => {
  const models = [...new Set(fixture.cases.map(({ model }) => model))];
  for (const model of models) assert.equal(await load(fixture.server, model), null, model);
  await Promise.all(fixture.cases.map((one) => isAnswered(fixture, one)));
  for (const one of fixture.cases) await isAnswered(fixture, one);
});

test("requests of one batch are one forward, and a request that does not fit fails alone", async () => {
  const ones = (rows: number) =>
    floats(
      "INPUT__0",
      Array.from({ length: rows * 3 * 64 * 64 }, () => 1),
      [rows, 3, 64, 64],
    );
  const replies = await Promise.all(
    [1, 2, 1].map((rows) => infer(fixture.server, "resnet50", [ones(rows)], ["OUTPUT__0"])),
  );
  const answers = replies.map(({ outputs }) => outputs.get("OUTPUT__0")!);
  assert.deepEqual(
    answers.map(({ shape }) => shape),
    [
      [1, 1000],
      [2, 1000],
      [1, 1000],
    ],
  );
  assertClose(answers[2]!.data, answers[0]!.data, "the same picture");
  const stats = await fetch(`http://127.0.0.1:${fixture.server.httpPort}/v2/models/resnet50/stats`);
  const {
    model_stats: [resnet],
  } = (await stats.json()) as { model_stats: { inference_count: number; execution_count: number }[] };
  assert.ok(resnet!.execution_count < resnet!.inference_count, JSON.stringify(resnet));
});

test("a model keeps its state, and what it does to its input nobody else sees", async () => {
  const values = Array.from({ length: 5000 }, (_, index) => index);
  for (let run = 0; run < 3; run++) {
    const reply = await infer(fixture.server, "in_place", [floats("INPUT__0", values)], ["OUTPUT__0"]);
    assert.deepEqual([...numbers(reply.outputs.get("OUTPUT__0")!.data)].slice(0, 3), [0, 2, 4]);
  }
});

test("a model has the threads that its parameters say", async () => {
  const counts = await Promise.all(
    [1, 3].map(async (count) => (await readdir(`/proc/${await workerOf(fixture, `threads_${count}`)}/task`)).length),
  );
  // PyTorch has two pools, each with as many threads beside the main one.
  assert.deepEqual(counts, [1, 1 + 2 * (3 - 1)]);
});

const refusals: readonly [model: string, sentence: string | RegExp][] = [
  ["load_count", "unable to load model 'load_count', configuration expects 2 inputs, model provides 1"],
  [
    "load_argument",
    "An input of type 'int' was detected in the model. Only a single input of type Dict(str, Tensor) or input(s) of type Tensor are supported.",
  ],
  [
    "load_index",
    /^The input INPUT__4 in the model configuration refers to an input index which doesn't exist\. This model has 1 inputs/,
  ],
  ["load_strings", "Triton only supports 1 dimensional List of String as input for 'texts' for model 'load_strings'"],
  ["load_boolean", "failed to convert 'perhaps' to boolean"],
  ["load_absent", /^unable to find '.*\/load_absent\/1\/model.pt' for model instance 'load_absent'/],
  [
    "load_weights",
    /the file holds no program, as torch.save makes it: save one with torch.jit.save or torch.export.save/,
  ],
];

for (const [model, sentence] of refusals)
  test(`${model}: the load fails with a sentence`, async () => {
    const error = await load(fixture.server, model);
    assert.notEqual(error, null);
    const own = error!
      .replace(/^load failed for model '[^']*': version 1 is at UNAVAILABLE state: (\w+: )?/, "")
      .replace(/;\n?$/, "");
    if (typeof sentence === "string") assert.equal(own, sentence);
    else assert.match(own, sentence);
  });

const failures: readonly [model: string, output: string, values: readonly number[], sentence: string | RegExp][] = [
  ["wrong_scalar", "OUTPUT__0", [1], "output 'OUTPUT__0' is a scalar which is not supported."],
  [
    "wrong_typed",
    "OUTPUT__1",
    [1],
    "configuration expects datatype TYPE_FP32 for output 'OUTPUT__1', model provides TYPE_FP64",
  ],
  ["wrong_rows", "OUTPUT__2", [1, 1], "output 'OUTPUT__2' has 1 rows for a batch of 2"],
  [
    "wrong_beyond",
    "OUTPUT__3",
    [1],
    "The output OUTPUT__3 in the model configuration refers to an output index which doesn't exist. This model has 3 outputs",
  ],
  ["wrong_rows", "OUTPUT__2", [1000], /^PyTorch execute failure: .*more than a hundred/s],
];

for (const [model, output, values, sentence] of failures)
  test(`${model} fails its request, and goes on: ${String(sentence)}`, async () => {
    assert.equal(await load(fixture.server, model), null);
    const reply = await infer(fixture.server, model, [floats("INPUT__0", values, [values.length, 1])], [output]);
    if (typeof sentence === "string") assert.equal(reply.error, sentence);
    else assert.match(reply.error!, sentence);
  });
