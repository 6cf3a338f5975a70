import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { OnnxRuntime } from "@galatea/server/native";
import { convertEncoder, onnxFileBytesMax, type EncoderConversion } from "./convert-encoder.ts";
import { flatten, readGolden, writeCheckpoint, type CheckpointForm, type Golden } from "./golden-fixture.ts";
import { openRuntime, runOnnx } from "@galatea/server/native/named-runs-fixture.ts";

let directory: string;
let runtime: OnnxRuntime;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-convert-"));
  runtime = openRuntime();
});

after(async () => {
  await runtime[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

const requested: Omit<EncoderConversion, "source" | "target"> = {
  weights: "FLOAT",
  integers: "INT64",
  operators: "fused",
  opset: 17,
  oneSegment: false,
  pooler: false,
  names: new Map(),
  fileBytesMax: onnxFileBytesMax,
  signal: new AbortController().signal,
};

let count = 0;

/**
 * Converts a golden encoder. Returns the largest difference between its outputs and those of `transformers`, over all
 * outputs and cases.
 */
async function difference(golden: Golden, more: Partial<EncoderConversion> = {}, form: CheckpointForm = {}) {
  const source = join(directory, `source-${count}`);
  const target = join(directory, `model-${count++}.onnx`);
  await writeCheckpoint(source, golden, form);
  const pooler = golden.cases[0]!.outputs["pooler_output"] !== undefined;
  const options = { ...requested, pooler, source, target, ...more };
  const converted = await convertEncoder(options);
  const name = (each: string) => options.names.get(each) ?? each;
  const runs = golden.cases.map(({ inputs }) =>
    Object.fromEntries(
      Object.entries(inputs)
        .filter(([each]) => converted.inputs.some((input) => input.name === name(each)))
        .map(([each, values]) => [name(each), flatten(values)]),
    ),
  );
  const responses = await runOnnx(runtime, target, runs);
  let largest = 0;
  for (const [index, { inputs, outputs }] of golden.cases.entries()) {
    const mask = flatten(inputs["attention_mask"]!).numbers;
    for (const [each, values] of Object.entries(outputs).filter(([one]) => options.pooler || one !== "pooler_output")) {
      const expected = flatten(values);
      const response = responses[index]!.get(name(each))!;
      assert.deepEqual(response.shape, expected.shape);
      const width = expected.shape.at(-1)!;
      for (const [at, value] of expected.numbers.entries()) {
        // Outputs at padding are undefined, so they are not compared.
        if (each === "last_hidden_state" && mask[Math.floor(at / width)] === 0) continue;
        largest = Math.max(largest, Math.abs(value - response.numbers[at]!));
      }
    }
  }
  return { largest, converted, source, target };
}

const encoders = (await readdir(new URL("golden", import.meta.url)))
  .filter((file) => file.endsWith(".json"))
  .map((file) => file.slice(0, -".json".length));

for (const name of encoders)
  test(`${name} gives the library's outputs, with ONNX Runtime's operators and with standard ones`, async () => {
    const golden = await readGolden(name);
    for (const operators of ["fused", "standard"] as const) {
      const { largest } = await difference(golden, { operators });
      assert.ok(largest < 2e-5, `${operators}: ${largest}`);
    }
  });

test("half precision takes half the bytes and gives nearly the same FP32 outputs", async () => {
  for (const [name, operators] of [
    ["bert", "fused"],
    ["roberta", "standard"],
    ["mpnet", "fused"],
    ["albert", "standard"],
  ] as const) {
    const golden = await readGolden(name);
    const complete = await difference(golden, { operators });
    const half = await difference(golden, { operators, weights: "FLOAT16" });
    assert.ok(half.largest > 1e-5 && half.largest < 0.02, `${name}: ${half.largest}`);
    const weightBytes = golden.tensors.reduce((sum, [, shape]) => sum + shape.reduce((a, b) => a * b, 2), 0);
    assert.ok(complete.converted.byteLength - half.converted.byteLength > 0.8 * weightBytes);
  }
});

test("weights convert from one file or several, under older names, and as part of a larger model", async () => {
  const golden = await readGolden("bert");
  const forms: readonly (readonly [CheckpointForm, number])[] = [
    [{ shards: 3 }, 2e-5],
    [{ prefix: "bert.", formerNames: true }, 2e-5],
    [{ type: "F64" }, 2e-5],
    [{ type: "F16" }, 0.01],
    [{ type: "BF16" }, 0.05],
  ];
  for (const [form, most] of forms) {
    const { largest, converted } = await difference(golden, {}, { ...form, further: ["cls.predictions.bias"] });
    assert.ok(largest < most, `${JSON.stringify(form)}: ${largest}`);
    assert.deepEqual(converted.left, ["cls.predictions.bias"]);
  }
});

test("inputs become INT32 and are renamed on request, in every opset", async () => {
  const names = new Map([
    ["input_ids", "token_ids"],
    ["attention_mask", "attn_mask"],
    ["last_hidden_state", "output"],
  ]);
  for (const name of ["bert", "mpnet"])
    for (const operators of ["fused", "standard"] as const)
      for (const opset of [17, 18, 19, 20, 21]) {
        const { largest, converted } = await difference(await readGolden(name), {
          operators,
          opset,
          names,
          integers: "INT32",
          pooler: false,
        });
        assert.ok(largest < 2e-5, `${name} ${operators} ${opset}: ${largest}`);
        assert.deepEqual(
          converted.inputs.slice(0, 2).map((input) => [input.name, input.type]),
          [
            ["token_ids", "INT32"],
            ["attn_mask", "INT32"],
          ],
        );
      }
});

test("a model too large for one file stores its weights in a second file and gives the same outputs", async () => {
  const golden = await readGolden("bert");
  const { largest, converted, target } = await difference(golden, { fileBytesMax: 20_000 });
  assert.ok(largest < 2e-5);
  assert.equal(converted.dataFile, `${target}.data`);
  const [own, data] = await Promise.all([stat(target), stat(`${target}.data`)]);
  assert.ok(own.size < 20_000 && data.size > 10_000);
  assert.equal(own.size + data.size, converted.byteLength);
});

test("sentences of one segment need no token types", async () => {
  const bert = await readGolden("bert");
  const [first] = bert.cases;
  const ids = flatten(first!.inputs["input_ids"]!);
  const zeros = { ...ids, numbers: ids.numbers.map(() => 0) };
  for (const operators of ["fused", "standard"] as const) {
    const source = join(directory, `segments-${operators}`);
    await writeCheckpoint(source, bert);
    const { token_type_ids: _, ...two } = first!.inputs;
    const inputs = Object.fromEntries(Object.entries(two).map(([name, values]) => [name, flatten(values)]));
    const responseCount: number[][] = [];
    for (const oneSegment of [false, true]) {
      const target = join(source, `${oneSegment}.onnx`);
      await convertEncoder({ ...requested, operators, oneSegment, source, target });
      const more = oneSegment ? {} : { token_type_ids: zeros };
      const [response] = await runOnnx(runtime, target, [{ ...inputs, ...more }]);
      responseCount.push([...response!.get("last_hidden_state")!.numbers]);
    }
    const apart = responseCount[0]!.map((value, index) => Math.abs(value - responseCount[1]![index]!));
    assert.ok(Math.max(...apart) < 2e-6);
  }
});

test("a target that cannot be written is reported, and nothing of it remains", async () => {
  const golden = await readGolden("bert");
  const source = join(directory, "unwritten");
  await writeCheckpoint(source, golden);
  const nowhere = { ...requested, source, target: "/dev/full/model.onnx" };
  await assert.rejects(convertEncoder(nowhere), /'\/dev\/full' is not a directory in which to write 'model\.onnx' in/);
  const huge = { ...golden, config: { ...golden.config, vocab_size: 49 } };
  await writeCheckpoint(source, huge);
  await assert.rejects(
    convertEncoder({ ...requested, source, target: join(source, "model.onnx") }),
    /'embeddings.word_embeddings.weight' in '.*' is \[48, 16\], and config.json says \[49, 16\]/,
  );
  assert.deepEqual((await readdir(source)).toSorted(), ["config.json", "model.safetensors"]);
});

test("an aborted conversion leaves no files", async () => {
  const source = join(directory, "stopped");
  await writeCheckpoint(source, await readGolden("bert"));
  const stopping = new AbortController();
  const converting = convertEncoder({
    ...requested,
    source,
    target: join(source, "model.onnx"),
    signal: stopping.signal,
  });
  stopping.abort(new Error("stopped here"));
  await assert.rejects(converting, /stopped here/);
  assert.deepEqual((await readdir(source)).toSorted(), ["config.json", "model.safetensors"]);
});
