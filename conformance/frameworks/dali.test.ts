/**
 * The backend `dali` with pipelines made for a GPU, compared with DALI's own results on the CPU and with an independent
 * decoder.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { openDali, type DaliFixture } from "./dali-fixture.ts";
import { floats, infer, load, privateBytesOf, type Case, type TensorFile } from "./framework-fixture.ts";

let fixture: DaliFixture;
before(async () => {
  fixture = await openDali();
});
after(() => fixture[Symbol.asyncDispose]());

async function read({ file, ...rest }: TensorFile) {
  return { ...rest, data: await readFile(join(fixture.directory, file)) };
}

async function hasResponse({ model, inputs, outputs }: Case): Promise<void> {
  const input = await Promise.all(inputs.map(read));
  const names = outputs.map(({ name }) => name);
  const reply = await infer(fixture.server, model, input, names);
  assert.equal(reply.error, undefined, model);
  for (const { name, datatype, shape, data } of await Promise.all(outputs.map(read))) {
    const found = reply.outputs.get(name)!;
    assert.deepEqual([found.datatype, found.shape], [datatype, shape], `${model} ${name}`);
    assert.ok(found.data.equals(data), `${model} ${name} differs from DALI's own result`);
  }
}

test("further DALI models are forks of the first: their loads import nothing and take little memory", async () => {
  const ms: number[] = [];
  for (const model of ["frames", "named", "inception_strings"]) {
    const began = performance.now();
    assert.equal(await load(fixture.server, model), null);
    ms.push(performance.now() - began);
  }
  const [first, ...further] = ms;
  // The fastest load counts, because a busy machine may delay any of them.
  assert.ok(Math.min(...further) < first! / 3, `loads took ${ms.map(Math.round).join(", ")} ms`);
  for (const one of fixture.cases.filter(({ model }) => model === "inception_strings")) await hasResponse(one);
  for (const [model, megabytes] of [
    ["named", 8],
    ["inception_strings", 30],
  ] as const) {
    const own = (await privateBytesOf(fixture, model)) / 1e6;
    assert.ok(own < megabytes, `${model} has ${own} MB`);
  }
});

const models = () => [...new Set(fixture.cases.map(({ model }) => model))];

test("pipelines written for a GPU return the same bytes as DALI on the CPU, alone and in a batch", async () => {
  const created = await readFile(join(fixture.repository, "inception", "1", "model.dali"), "latin1");
  assert.match(created, /mixed/);
  for (const model of models()) assert.equal(await load(fixture.server, model), null, model);
  for (const one of fixture.cases) await hasResponse(one);
  await Promise.all([...fixture.cases, ...fixture.cases].map(hasResponse));
});

test("decoded and resized photographs are close to the results of an independent decoder and scaler", async () => {
  assert.equal(await load(fixture.server, "inception"), null);
  const script = fileURLToPath(new URL("dali_truth.py", import.meta.url));
  for (const photograph of fixture.photographs) {
    const { stdout } = await promisify(execFile)(fixture.decoder, [script, photograph], {
      encoding: "buffer",
      maxBuffer: 2 ** 24,
    });
    const truth = new Float32Array(new Uint8Array(stdout).buffer);
    const data = await readFile(photograph);
    const input = { name: "DALI_INPUT_0", datatype: "UINT8", shape: [1, data.length], data };
    const reply = await infer(fixture.server, "inception", [input], ["DALI_OUTPUT_0"]);
    const found = new Float32Array(new Uint8Array(reply.outputs.get("DALI_OUTPUT_0")!.data).buffer);
    assert.equal(found.length, truth.length);
    const differences = truth.map((one, index) => Math.abs(one - found[index]!)).toSorted();
    const mean = differences.reduce((sum, one) => sum + one, 0) / differences.length;
    const spread = truth.reduce((sum, one) => sum + Math.abs(one), 0) / truth.length;
    // One step of a pixel's value is 0.017. Decoders may round differently, and scalers may filter edges differently.
    assert.ok(mean < 0.02, `${photograph}: mean difference ${mean}, with values of ${spread}`);
    assert.ok(differences[Math.floor(differences.length * 0.99)]! < 0.15, photograph);
    assert.ok(spread > 0.5, `${photograph}: the truth is constant`);
  }
});

test("tensors that config.pbtxt omits are completed from the DALI pipeline", async () => {
  assert.equal(await load(fixture.server, "thumbnails"), null);
  const response = await fetch(`http://127.0.0.1:${fixture.server.httpPort}/v2/models/thumbnails/config`);
  const config = (await response.json()) as Record<string, unknown> &
    Record<"input" | "output", Record<string, unknown>[]>;
  const tensors = [...config.input, ...config.output].map(
    ({ name, data_type: type, dims, allow_ragged_batch: ragged }) => [name, type, dims, ragged],
  );
  assert.deepEqual(tensors, [
    ["encoded", "TYPE_UINT8", [-1], true],
    ["size", "TYPE_FP32", [-1], true],
    ["thumbnail", "TYPE_UINT8", [-1, -1, -1], undefined],
    ["shape", "TYPE_INT64", [-1], undefined],
  ]);
  assert.equal(config["max_batch_size"], 8);
  assert.ok("dynamic_batching" in config);
});

/** Returns the number of batches with more than `rows` rows that the model has run. */
async function batchesAbove(model: string, rows: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${fixture.server.httpPort}/v2/models/${model}/stats`);
  const { model_stats: all } = (await response.json()) as {
    model_stats: { batch_stats: { batch_size: number; compute_infer: { count: number } }[] }[];
  };
  const larger = all[0]!.batch_stats.filter(({ batch_size: size }) => size > rows);
  return larger.reduce((sum, { compute_infer: { count } }) => sum + count, 0);
}

test("requests with samples of different shapes run in one batch", async () => {
  assert.equal(await load(fixture.server, "loudness"), null);
  const sounds = fixture.cases.filter(({ model }) => model === "loudness");
  assert.equal(new Set(sounds.map(({ inputs: [sound] }) => sound!.shape.join())).size, sounds.length);
  const before = await batchesAbove("loudness", 2);
  // Each request has two rows, and all requests have different lengths.
  for (let round = 0; round < 10; round++) await Promise.all(sounds.map(hasResponse));
  assert.ok((await batchesAbove("loudness", 2)) > before, "no batch had more than one request");
});

test("an invalid image fails its own request and no other request of its batch", async () => {
  assert.equal(await load(fixture.server, "inception_waits"), null);
  const complete = fixture.cases
    .filter(({ model, inputs: [picture] }) => model === "inception" && picture!.shape[0] === 1)
    .map((one) => ({ ...one, model: "inception_waits" }));
  const broken = async () => {
    const data = Buffer.from("this is no picture");
    const input = { name: "DALI_INPUT_0", datatype: "UINT8", shape: [1, data.length], data };
    const reply = await infer(fixture.server, "inception_waits", [input], ["DALI_OUTPUT_0"]);
    assert.equal(reply.status, 400);
    assert.match(
      reply.error!,
      /^Runtime error: Critical error in pipeline:\nError in CPU operator `nvidia\.dali\.fn\.decoders\.image`/,
    );
  };
  assert.equal(complete.length, 3);
  for (let round = 0; round < 3; round++) await Promise.all([broken(), ...complete.map(hasResponse)]);
});

test("the error for a request whose output samples have different shapes names the shapes", async () => {
  assert.equal(await load(fixture.server, "thumbnails"), null);
  const data = await readFile(fixture.photographs[0]!);
  const encoded = { name: "encoded", datatype: "UINT8", shape: [2, data.length], data: Buffer.concat([data, data]) };
  const reply = await infer(
    fixture.server,
    "thumbnails",
    [encoded, floats("size", [8, 9, 8, 10], [2, 2])],
    ["thumbnail"],
  );
  assert.equal(
    reply.error,
    "DALI Backend error: output 'thumbnail' has samples of different shapes in one request, which do not form a tensor: [8, 9, 3], [8, 10, 3]",
  );
});

const refusals: readonly [model: string, sentence: string | RegExp][] = [
  [
    "refuse_type",
    'Mismatch of data_type config for "value".\nData type defined in config: TYPE_FP64\nData type defined in pipeline: TYPE_FP32',
  ],
  [
    "refuse_rank",
    'Mismatch in number of dimensions for "value"\nNumber of dimensions defined in config: 2\nNumber of dimensions defined in pipeline: 1',
  ],
  ["refuse_input", "Configuration file contains config for other but such input is not present in the pipeline."],
  [
    "refuse_outputs",
    "The number of outputs specified in the DALI pipeline and the configuration file do not match.\nModel config outputs: 2\nPipeline outputs: 1",
  ],
  [
    "refuse_absent",
    /^DALI Backend error: Failed to load model file\. The program looked in the following locations: .*\/1\/model\.dali, .*\/1\/dali\.py\. /,
  ],
  ["refuse_filename", /Model file name 'a"b' may have letters, digits, _, \. and - only/],
  ["refuse_threads", "parameter 'num_threads' must be a number, found 'many'"],
  ["refuse_too_many_threads", "a pipeline has from 1 to 1024 threads, found 5000"],
  ["refuse_split", "parameter 'split_along_outer_axis' names 'none', which is not an output of the model"],
  [
    "refuse_gpu_only",
    / is not served: operator 'experimental\.MedianBlur' \(__MedianBlur_0\) has no implementation for the CPU, on which pipelines run$/,
  ],
  ["refuse_reader", /operator 'readers\.File' .* reads files itself, so its outputs do not depend on requests$/],
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
