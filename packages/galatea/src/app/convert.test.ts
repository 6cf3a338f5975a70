import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readGolden, writeCheckpoint } from "@galatea/tools/conversion/golden-fixture.ts";

const program = fileURLToPath(new URL("../main.ts", import.meta.url));
let directory: string;

before(async () => (directory = await mkdtemp(join(tmpdir(), "galatea-convert-"))));
after(() => rm(directory, { recursive: true }));

function galatea(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: "utf8" });
  return { status, stdout, stderr };
}

async function checkpoint(name: string, config: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const golden = await readGolden("bert");
  const source = join(directory, name);
  await writeCheckpoint(source, { ...golden, config: { ...golden.config, ...config } });
  return source;
}

test("galatea convert writes an encoder checkpoint into a repository as an ONNX model with a matching config.pbtxt", async () => {
  const source = await checkpoint("whole");
  const repository = join(directory, "models");
  const add = ["convert", source, "--repository", repository, "--name", "encoder", "--integers=int32", "--pooler"];
  const { status, stdout, stderr } = galatea(...add, "--rename=input_ids=token_ids", "--max-batch-size=4");
  assert.equal(status, 0, stderr);
  assert.equal(
    stdout,
    `${join(repository, "encoder")}: bert, 1 MiB\n` +
      "inputs token_ids, attention_mask, token_type_ids, up to 20 tokens; outputs last_hidden_state, pooler_output\n",
  );
  assert.equal(
    await readFile(join(repository, "encoder", "config.pbtxt"), "utf8"),
    `name: "encoder"
backend: "onnxruntime"
max_batch_size: 4
input [
  {
    name: "token_ids"
    data_type: TYPE_INT32
    dims: [ -1 ]
  },
  {
    name: "attention_mask"
    data_type: TYPE_INT32
    dims: [ -1 ]
  },
  {
    name: "token_type_ids"
    data_type: TYPE_INT32
    dims: [ -1 ]
  }
]
output [
  {
    name: "last_hidden_state"
    data_type: TYPE_FP32
    dims: [ -1, 16 ]
  },
  {
    name: "pooler_output"
    data_type: TYPE_FP32
    dims: [ 16 ]
  }
]
`,
  );
  const checked = galatea("validate", repository);
  assert.deepEqual(checked, { status: 0, stdout: "1 models checked: 0 errors, 0 warnings\n", stderr: "" });
  const again = galatea(...add);
  assert.deepEqual(again.status, 1);
  assert.match(
    again.stderr,
    /^galatea convert: '.*\/models\/encoder' is there already; remove it, or take another --name\n$/,
  );
  assert.deepEqual((await readdir(directory)).toSorted(), ["models", "whole"]);
});

test("galatea convert rejects an unsupported checkpoint with one sentence that names the problem", async () => {
  const known = "bert, roberta, xlm-roberta, camembert, electra, distilbert, mpnet, albert";
  const target = join(directory, "refused.onnx");
  const cases: readonly (readonly [string, Record<string, unknown>, string])[] = [
    ["t5", { model_type: "t5" }, `there is no graph for a model of type 't5'; there is for: ${known}`],
    [
      "untyped",
      { model_type: 7 },
      `config.json has no 'model_type'; encoders of these types can be converted: ${known}`,
    ],
    [
      "relative",
      { position_embedding_type: "relative_key" },
      '\'position_embedding_type\' in config.json is "relative_key", but must be "absolute"',
    ],
    ["laplace", { hidden_act: "laplace" }, "'hidden_act' in config.json is \"laplace\", but must be one of gelu, "],
    [
      "deep",
      { num_hidden_layers: 1e9 },
      "'num_hidden_layers' in config.json is 1000000000, but must be a number from 1 to 256",
    ],
    ["heads", { num_attention_heads: 3 }, "config.json has 3 heads for a width of 16, which they do not divide"],
  ];
  for (const [name, config, sentence] of cases) {
    const { status, stdout, stderr } = galatea("convert", await checkpoint(name, config), target);
    assert.deepEqual([status, stdout], [1, ""]);
    assert.ok(stderr.includes(sentence) && stderr.startsWith("galatea convert: "), stderr);
    assert.equal(stderr.trimEnd().split("\n").length, 1);
  }
  const empty = join(directory, "config-only");
  await checkpoint("config-only");
  await rm(join(empty, "model.safetensors"));
  const { stderr } = galatea("convert", empty, target);
  assert.match(stderr, /'.*\/config-only' has neither model\.safetensors nor /);
  await writeFile(join(empty, "config.json"), "[1]");
  assert.match(galatea("convert", empty, target).stderr, /config\.json' is not a JSON object\n$/);
  assert.match(galatea("convert", join(directory, "absent"), target).stderr, /absent' does not exist\n$/);
  const file = join(empty, "config.json");
  assert.match(galatea("convert", file, target).stderr, /is not a directory with config\.json and weights\n$/);
});

test("galatea convert rejects flags that contradict each other", () => {
  const told = (...args: readonly string[]) => galatea("convert", ...args).stderr.split("\n")[0];
  assert.equal(told(), "galatea convert takes a directory with config.json and weights");
  const either = "galatea convert takes either a file to write or both --repository and --name";
  assert.equal(told("a"), either);
  assert.equal(told("a", "--repository=b"), either);
  assert.equal(told("a", "b.onnx", "--repository=b", "--name=c"), either);
  assert.equal(told("a", "b.bin"), "galatea convert writes .onnx files, not 'b.bin'");
  assert.equal(
    told("a", "b.onnx", "--dtype=int4"),
    "Invalid option value. Got int4 for --dtype, expected one of float32, float16",
  );
  assert.equal(told("a", "b.onnx", "--rename=x"), "--rename takes <name>=<other name>, not 'x'");
  assert.equal(told("a", "b.onnx", "--opset=16"), "Invalid option value. Got 16 for --opset, expected at least 17");
});
