import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { encodeOnnx } from "@galatea/server/onnx-file";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));
const io = 'input { name: "I" data_type: TYPE_FP32 dims: 1 } output { name: "O" data_type: TYPE_FP32 dims: 1 }';
const program =
  "import nobody_has_this\n\nclass TritonPythonModel:\n    def execute(self, requests):\n        return []\n";

async function validate(
  t: TestContext,
  files: Readonly<Record<string, string | Uint8Array>>,
  flags: readonly string[] = [],
  env = process.env,
) {
  const root = await mkdtemp(join(tmpdir(), "validate-"));
  t.after(() => rm(root, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(path.endsWith("/") ? join(root, path) : dirname(join(root, path)), { recursive: true });
    if (!path.endsWith("/")) await writeFile(join(root, path), text);
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, "validate", root, ...flags], {
    encoding: "utf8",
    env,
  });
  return { status, stderr, root, lines: stdout.replaceAll(root, "").trimEnd().split("\n") };
}

/** Returns the errors that `serve` reports for the same directory, which must exist during the call. */
function servingErrors(root: string): string {
  const ports = ["http", "grpc", "metrics"].map((each) => `--${each}-port=0`);
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [main, "serve", `--model-repository=${root}`, ...ports],
    { encoding: "utf8", timeout: 60_000 },
  );
  assert.equal(status, 1, stdout + stderr);
  return stdout + stderr;
}

/** A model y = Identity(x) with FP32 tensors and a batch dimension of any size. */
const batchable = encodeOnnx({
  graphName: "identity",
  opsets: { "": 17 },
  operators: [{ operator: "Identity", domain: "", inputs: ["x"], outputs: ["y"], attributes: {} }],
  constants: [],
  inputs: [{ name: "x", type: "FLOAT", dims: ["batch", 4] }],
  outputs: [{ name: "y", type: "FLOAT", dims: ["batch", 4] }],
});

test("galatea validate prints the number of models of a valid repository and runs none of them", async (t) => {
  const { status, lines } = await validate(t, {
    "a/config.pbtxt": `backend: "python" ${io}`,
    "a/1/model.py": program,
    "b/config.pbtxt": `backend: "python" ${io}`,
    "b/1/model.py": program,
  });
  assert.deepEqual({ status, lines }, { status: 0, lines: ["2 models checked: 0 errors, 0 warnings"] });
});

test("galatea validate fails for a repository without models", async (t) => {
  const { status, lines } = await validate(t, { "readme.txt": "" });
  assert.equal(status, 1);
  assert.match(lines[0]!, /error: this model repository contains no model directory$/);
  assert.equal(lines.at(-1), "0 models checked: 1 errors, 0 warnings");
});

test("galatea validate finds errors that only backends detect, in programs, model files and environments, with the texts of a load", async (t) => {
  const packed =
    'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }';
  const trees = ["model_type", "is_classifier"]
    .map((key, at) => `parameters { key: "${key}" value { string_value: "${["xgboost_json", "false"][at]}" } }`)
    .join(" ");
  const bytes = ["input", "output"]
    .map((way) => `${way} { name: "${way === "input" ? "body" : "answer"}" data_type: TYPE_STRING dims: 1 }`)
    .join(" ");
  const { status, lines, stderr, root } = await validate(t, {
    "environment/config.pbtxt": `backend: "python" ${io} ${packed}`,
    "environment/1/model.py": program,
    "onnx/config.pbtxt": 'backend: "onnxruntime"',
    "onnx/1/model.onnx": "no model",
    "plan/config.pbtxt": `platform: "tensorrt_plan" ${io}`,
    "plan/1/model.plan": "",
    "trees/config.pbtxt": `backend: "fil" max_batch_size: 8 ${io.replace('"I"', '"input__0"').replace('"O"', '"output__0"')} ${trees}`,
    "trees/1/xgboost.json": "[]",
    "booster/config.pbtxt": `backend: "xgboost" ${bytes}`,
    "booster/1/": "",
    "linear/config.pbtxt": `backend: "linear_learner" ${bytes}`,
    "linear/1/model_algo-1": "no archive",
    "absent/config.pbtxt": `backend: "python" ${io}`,
    "absent/1/other.py": program,
    "syntax/config.pbtxt": `backend: "python" ${io}`,
    "syntax/1/model.py": "x = 1\ndef broken(\n",
  });
  assert.equal(status, 1, stderr);
  const expected = [
    /^\/absent\/config.pbtxt:1:1: error: model.py does not exist in the model repository path: \/absent\/1\/model.py$/,
    /^\/booster\/config.pbtxt:1:1: error: the archive has no file that could be a model$/,
    /^\/environment\/config.pbtxt:\d+:\d+: error: EXECUTION_ENV_PATH '.*env.tar.gz' does not exist: /,
    /^\/linear\/config.pbtxt:1:1: error: the archive is not a zip archive, or is truncated$/,
    /^\/onnx\/config.pbtxt:1:1: error: onnx runtime error 7: Load model from /,
    /^\/plan\/config.pbtxt:\d+:\d+: error: unable to find backend library for backend 'tensorrt'/,
    /^\/syntax\/config.pbtxt:1:1: error: SyntaxError: '\(' was never closed \(model.py, line 2\)$/,
    /^\/trees\/config.pbtxt:\d+:\d+: error: unable to read '.*xgboost.json' as xgboost_json: the document is not an object$/,
    /^8 models checked: 8 errors, 0 warnings$/,
  ];
  assert.equal(lines.length, expected.length, lines.join("\n"));
  expected.forEach((pattern, at) => assert.match(lines[at]!, pattern));
  const serving = servingErrors(root).replaceAll(root, "");
  for (const line of lines.slice(0, -1)) {
    const [, message = ""] = /: error: (.*)$/.exec(line) ?? [];
    assert.ok(serving.includes(JSON.stringify(message).slice(1, -1)), `${message}\n${serving}`);
  }
});

test("galatea validate reports an ensemble whose step does not load, with the text of a load", async (t) => {
  const ensemble = (step: string) =>
    `platform: "ensemble" ${io} ensemble_scheduling { step { model_name: "${step}" model_version: -1 input_map { key: "I" value: "I" } output_map { key: "O" value: "O" } } }`;
  const python = `backend: "python" ${io}`;
  const broken = {
    syntax: [python, "def broken(\n"],
    unknown: [`${python} nonsense: 3`, program],
    negative: [`${python} max_batch_size: -1`, program],
    zero: [python.replace("dims: 1", "dims: 0"), program.replace("import nobody_has_this", "")],
    label: [python.replace(/dims: 1 \}$/, 'dims: 1 label_filename: "l.txt" }'), program],
  };
  const files: Record<string, string> = { "above/config.pbtxt": ensemble("of-syntax"), "above/1/": "" };
  for (const [name, [config = "", code = ""]] of Object.entries(broken)) {
    Object.assign(files, { [`${name}/config.pbtxt`]: config, [`${name}/1/model.py`]: code });
    Object.assign(files, { [`of-${name}/config.pbtxt`]: ensemble(name), [`of-${name}/1/`]: "" });
  }
  const { status, lines, root } = await validate(t, files);
  assert.equal(status, 1);
  const ensembles = lines.filter((line) => /^\/(?:of-|above)/.test(line));
  const syntax =
    "ensemble 'of-syntax' depends on 'syntax' which has no loaded version. Model 'syntax' loading failed with error: " +
    "version 1 is at UNAVAILABLE state: Internal: SyntaxError: '(' was never closed (model.py, line 1);";
  const above = `ensemble 'above' depends on 'of-syntax' which has no loaded version. Model 'of-syntax' loading failed with error: ${syntax}`;
  const messages = ensembles.map((line) => /: error: (.*)$/.exec(line)?.[1] ?? line);
  assert.equal(messages.length, Object.keys(broken).length + 1, lines.join("\n"));
  assert.ok(messages.includes(syntax) && messages.includes(above), messages.join("\n"));
  const serving = servingErrors(root)
    .replaceAll(root, "")
    .replaceAll(String.raw`\n`, " ");
  for (const message of messages)
    assert.ok(serving.includes(JSON.stringify(message).slice(1, -1)), `${message}\n${serving}`);
});

test("galatea validate prints a note, not an error, for a framework that is not installed", async (t) => {
  const frameworks = await mkdtemp(join(tmpdir(), "frameworks-"));
  t.after(() => rm(frameworks, { recursive: true }));
  const files = { "a/config.pbtxt": `platform: "pytorch_libtorch" ${io}`, "a/1/model.pt": "" };
  const env = { ...process.env, GALATEA_FRAMEWORKS: frameworks };
  const { status, lines } = await validate(t, files, ["--data", frameworks], env);
  assert.equal(status, 0);
  assert.match(lines[0]!, /^note: unable to find backend library for backend 'pytorch': its packages are not set up/);
  assert.deepEqual(lines.slice(1), ["1 models checked: 0 errors, 0 warnings"]);
});

test("galatea validate knows python-based backends in --backend-directory", async (t) => {
  const backends = await mkdtemp(join(tmpdir(), "backends-"));
  t.after(() => rm(backends, { recursive: true }));
  await mkdir(join(backends, "mine"));
  await writeFile(join(backends, "mine", "model.py"), program);
  const files = { "a/config.pbtxt": `backend: "mine" ${io}`, "a/1/weights": "" };
  const known = await validate(t, files, ["--backend-directory", backends]);
  assert.deepEqual([known.status, known.lines], [0, ["1 models checked: 0 errors, 0 warnings"]]);
  const unknown = await validate(t, files);
  assert.match(unknown.lines[0]!, /unable to find backend library for backend 'mine'/);
});

test("galatea validate does not open files that a rejected parameter names, because operator libraries run code", async (t) => {
  const named = 'backend: "onnxruntime" model_operations { op_library_filename: "absent.so" }';
  const { status, lines } = await validate(t, { "a/config.pbtxt": named, "a/1/model.onnx": "no model" });
  assert.equal(status, 1);
  // The server must not open these files. If it did, the error would be about the missing library or the invalid model.
  assert.equal(lines.length, 2, lines.join("\n"));
  assert.match(lines[0]!, /error: 'model_operations.op_library_filename' is not supported by this server yet/);
});

test("galatea validate reports warm-up files that are missing, too small or outside of the model's directory", async (t) => {
  const sample = (file: string) =>
    `model_warmup { name: "s" batch_size: 1 inputs { key: "I" value { data_type: TYPE_FP32 dims: 1 input_data_file: "${file}" } } }`;
  const files: Record<string, string> = { "small/warmup/data": "123", "good/warmup/data": "1234" };
  for (const [name, file] of [
    ["absent", "data"],
    ["good", "data"],
    ["outside", "../config.pbtxt"],
    ["small", "data"],
  ] as const) {
    files[`${name}/config.pbtxt`] = `backend: "python" ${io} ${sample(file)}`;
    files[`${name}/1/model.py`] = program;
  }
  const { status, lines, stderr } = await validate(t, files);
  assert.equal(status, 1, stderr);
  const expected = [
    /^\/absent\/config.pbtxt:\d+:\d+: error: failed to open text file for read \/absent\/warmup\/data: No such file or directory$/,
    /^\/outside\/config.pbtxt:\d+:\d+: error: failed to open text file .*must be in the model's warmup folder/,
    /^\/small\/config.pbtxt:\d+:\d+: error: .*warmup setting expects 4 bytes, but the data provided from dataonly has 3 bytes$/,
    /^4 models checked: 3 errors, 0 warnings$/,
  ];
  assert.equal(lines.length, expected.length, lines.join("\n"));
  expected.forEach((pattern, at) => assert.match(lines[at]!, pattern));
});

test("galatea validate reports errors of programs, warm-up samples and instance groups with the texts of galatea serve", async (t) => {
  const warmUp = (input: string, batch: number) =>
    `model_warmup { name: "s" batch_size: ${batch} inputs { key: "${input}" value { data_type: TYPE_FP32 dims: 1 zero_data: true } } }`;
  const configs = {
    batches: `backend: "python" ${io} ${warmUp("I", 9)}`,
    class: `backend: "python" ${io}`,
    group: `backend: "python" ${io} instance_group { kind: KIND_GPU gpus: [ -1 ] }`,
    input: `backend: "python" ${io} ${warmUp("X", 1)}`,
    method: `backend: "python" ${io}`,
  };
  const programs: Readonly<Record<string, string>> = {
    class: "class Model:\n    def execute(self, requests):\n        return []\n",
    method: "class TritonPythonModel:\n    def run(self, requests):\n        return []\n",
  };
  const served = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n";
  const files = Object.entries(configs).flatMap(([name, config]) => [
    [`${name}/config.pbtxt`, config],
    [`${name}/1/model.py`, programs[name] ?? served],
  ]);
  const { status, lines, root } = await validate(t, Object.fromEntries(files) as Record<string, string>);
  assert.equal(status, 1);
  assert.equal(lines.at(-1), "5 models checked: 5 errors, 0 warnings", lines.join("\n"));
  const serving = servingErrors(root).replaceAll(root, "");
  for (const line of lines.slice(0, -1)) {
    const [, message = ""] = /: error: (.*)$/.exec(line) ?? [];
    assert.ok(serving.includes(JSON.stringify(message).slice(1, -1)), `${message}\n${serving}`);
  }
});

test("galatea validate compares an ensemble with its completed steps, and reports errors with the texts of galatea serve", async (t) => {
  const tensors = (input: string, output: string) =>
    `input { name: "${input}" data_type: TYPE_FP32 dims: 4 } output { name: "${output}" data_type: TYPE_FP32 dims: 4 }`;
  const over = (step: string, version: number, batch: number) =>
    `platform: "ensemble" max_batch_size: ${batch} ${tensors("A", "B")} ensemble_scheduling { step { model_name: "${step}" model_version: ${version} ` +
    'input_map { key: "x" value: "A" } output_map { key: "y" value: "B" } } }';
  const { status, lines, root } = await validate(t, {
    "auto/config.pbtxt": 'backend: "onnxruntime"',
    "auto/1/model.onnx": batchable,
    "batch/config.pbtxt": over("auto", -1, 8),
    "batch/1/": "",
    "fits/config.pbtxt": over("auto", 1, 4),
    "fits/1/": "",
    "version/config.pbtxt": over("auto", 3, 4),
    "version/1/": "",
    "described/config.pbtxt": `backend: "onnxruntime" max_batch_size: 4 ${tensors("other", "y")}`,
    "described/1/model.onnx": batchable,
  });
  const refusals = [
    "ensemble batch allows maximum batch size 8, but it contains model auto which only allows maximum batch size to be 4",
    "ensemble 'version' depends on 'auto' whose required version 3 is not loaded.",
    "unexpected inference input 'other', allowed inputs are: x",
  ];
  assert.equal(status, 1);
  assert.equal(lines.at(-1), "5 models checked: 3 errors, 0 warnings", lines.join("\n"));
  const served = servingErrors(root);
  for (const refusal of refusals) {
    assert.ok(
      lines.some((line) => line.includes(`error: ${refusal}`)),
      `${refusal}\n${lines.join("\n")}`,
    );
    assert.ok(served.includes(refusal), `${refusal}\n${served}`);
  }
});

test("galatea validate prints a note for an ensemble with a step whose program completes its own configuration", async (t) => {
  const { status, lines } = await validate(t, {
    "completes/config.pbtxt": 'backend: "python"',
    "completes/1/model.py":
      "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(config):\n        return config\n" +
      "    def execute(self, requests):\n        return []\n",
    "e/config.pbtxt":
      'platform: "ensemble" max_batch_size: 8 input { name: "A" data_type: TYPE_FP32 dims: 4 } output { name: "B" data_type: TYPE_FP32 dims: 4 } ' +
      'ensemble_scheduling { step { model_name: "completes" model_version: -1 input_map { key: "x" value: "A" } output_map { key: "y" value: "B" } } }',
    "e/1/": "",
  });
  assert.equal(status, 0);
  assert.deepEqual(lines, [
    "/e/config.pbtxt:1:180: warning: step 'completes' completes its configuration in its own code when it is loaded: only a load can check that the step fits",
    "2 models checked: 0 errors, 1 warnings",
  ]);
});
