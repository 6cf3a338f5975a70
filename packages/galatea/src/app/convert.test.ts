import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readGolden, writeCheckpoint } from "@galatea/tools/conversion/golden-fixture.ts";

const program = fileURLToPath(new URL("../main.ts", import.meta.url));
let directory: string;

before(async () => (directory = await mkdtemp(join(tmpdir(), "galatea-convert-"))));
after(() => rm(directory, { recursive: true }));

/** Where programs are looked for; none of them is TensorRT's. */
let path = "/nowhere";

function galatea(...args: readonly string[]) {
  const env = { ...process.env, PATH: path };
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: "utf8", env });
  return { status, stdout, stderr };
}

async function checkpoint(name: string, config: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const golden = await readGolden("bert");
  const source = join(directory, name);
  await writeCheckpoint(source, { ...golden, config: { ...golden.config, ...config } });
  return source;
}

test("an encoder becomes a model of a repository, with the configuration that fits it", async () => {
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

test("what cannot be converted is refused by name, in one sentence", async () => {
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
      'has "relative_key" for \'position_embedding_type\'; what can be converted is "absolute"',
    ],
    ["laplace", { hidden_act: "laplace" }, "has \"laplace\" for 'hidden_act'; what can be converted is one of gelu, "],
    [
      "deep",
      { num_hidden_layers: 1e9 },
      "has 1000000000 for 'num_hidden_layers'; what can be converted is a number from 1 to 256",
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
  assert.match(galatea("convert", empty, target).stderr, /config\.json' is no JSON object\n$/);
  assert.match(galatea("convert", join(directory, "absent"), target).stderr, /absent' is not there\n$/);
  const file = join(empty, "config.json");
  assert.match(
    galatea("convert", file, target).stderr,
    /is neither a directory with config\.json and weights nor an ONNX file\n$/,
  );
});

/** Writes what it is asked as the plan, and says two lines; ends with 1 where the model is called broken. */
const fakeBuilder = `#!/bin/sh
for word in "$@"; do case "$word" in
  --saveEngine=*) plan="\${word#--saveEngine=}" ;;
  --onnx=*broken*) echo "reading" >&2; echo "unsupported operator" >&2; exit 1 ;;
  --onnx=*) /bin/test -s "\${word#--onnx=}" || exit 3 ;;
esac; done
echo building
printf '%s\n' "$@" > "$plan"
`;

test("a plan is built by TensorRT's own program where that is, of an encoder by way of ONNX", async () => {
  path = join(directory, "bin");
  await mkdir(path);
  await writeFile(join(path, "trtexec"), fakeBuilder, { mode: 0o755 });
  const source = await checkpoint("planned");
  const plan = join(directory, "model.plan");
  const { status, stdout, stderr } = galatea(
    "convert",
    source,
    plan,
    "--dtype=float16",
    "--max-tokens=12",
    "--max-batch-size=4",
  );
  assert.equal(status, 0, stderr);
  assert.match(
    stdout,
    /^building\n.*model\.plan: bert, 1 MiB\ninputs input_ids, attention_mask, token_type_ids, up to 12 tokens; /,
  );
  const asked = (await readFile(plan, "utf8")).split("\n").filter((word) => !/^--(onnx|saveEngine)=/.test(word));
  const shapes = (each: string) =>
    ["input_ids", "attention_mask", "token_type_ids"].map((name) => `${name}:${each}`).join(",");
  assert.deepEqual(asked, [
    `--minShapes=${shapes("1x1")}`,
    `--optShapes=${shapes("2x12")}`,
    `--maxShapes=${shapes("4x12")}`,
    "--fp16",
    "--skipInference",
    "",
  ]);
  const repository = join(directory, "plans");
  const added = galatea("convert", source, "--repository", repository, "--name=bert-trt", "--plan", "--integers=int32");
  assert.equal(added.status, 0, added.stderr);
  const config = await readFile(join(repository, "bert-trt", "config.pbtxt"), "utf8");
  assert.match(config, /^name: "bert-trt"\nbackend: "tensorrt"\nmax_batch_size: 16\n/);
  assert.deepEqual(await readdir(join(repository, "bert-trt", "1")), ["model.plan"]);
  const other = join(directory, "other.onnx");
  await writeFile(other, "graph");
  const three = ["--min-shapes=x:1x3", "--opt-shapes=x:2x3", "--max-shapes=x:4x3"];
  assert.equal(galatea("convert", other, plan, ...three).stdout, `building\n${plan}: 1 MiB\n`);
  assert.match(
    await readFile(plan, "utf8"),
    /^--onnx=.*other\.onnx\n--saveEngine=.*\n--minShapes=x:1x3\n--optShapes=x:2x3\n--maxShapes=x:4x3\n--skipInference\n$/,
  );
  const broken = join(directory, "broken.onnx");
  await writeFile(broken, "graph");
  const failed = galatea("convert", broken, join(directory, "broken.plan"));
  assert.match(failed.stderr, /trtexec ended with exit code 1: reading \| unsupported operator\n$/);
  assert.equal(
    (await readdir(directory)).some((name) => name.startsWith(".") || name === "broken.plan"),
    false,
  );
  path = "/nowhere";
});

test("without TensorRT's program a plan is refused with what the machine lacks, before anything is converted", async () => {
  const source = await checkpoint("unplanned");
  const { status, stdout, stderr } = galatea("convert", source, join(directory, "absent.plan"));
  assert.deepEqual([status, stdout], [1, ""]);
  assert.match(
    stderr,
    /^galatea convert: a plan is built by TensorRT's own 'trtexec', which is neither in PATH nor in .* Build it where the plan is going to run/,
  );
  const onnx = join(directory, "some.onnx");
  await writeFile(onnx, "graph");
  assert.match(
    galatea("convert", onnx, join(directory, "b.onnx")).stderr,
    /is an ONNX file already; what can be made of it is a plan/,
  );
});

test("a command line that does not fit together is told", () => {
  const told = (...args: readonly string[]) => galatea("convert", ...args).stderr.split("\n")[0];
  assert.equal(told(), "galatea convert takes a directory with config.json and weights, or an ONNX file");
  const either = "galatea convert takes either a file to write or both --repository and --name";
  assert.equal(told("a"), either);
  assert.equal(told("a", "--repository=b"), either);
  assert.equal(told("a", "b.onnx", "--repository=b", "--name=c"), either);
  assert.equal(told("a", "b.bin"), "galatea convert writes .onnx and .plan files, not 'b.bin'");
  assert.equal(
    told("a", "b.onnx", "--dtype=int4"),
    "Invalid option value. Got int4 for --dtype, expected one of float32, float16",
  );
  assert.equal(told("a", "b.onnx", "--rename=x"), "--rename takes <name>=<other name>, not 'x'");
  assert.equal(told("a", "b.onnx", "--opset=16"), "Invalid option value. Got 16 for --opset, expected at least 17");
});
