/** Invalid config.pbtxt files in load requests: each load is rejected with the cause and its position. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { sendRequest, assertEchoes, errorOf, load } from "./http-client.ts";
import { faultyConfig, writeFaultyModel } from "./faulty-model.ts";
import { openServing, type Serving } from "./serving.ts";

let serving: Serving;
let port: number;
before(async () => {
  serving = await openServing({
    flags: ["--model-control-mode=explicit", "--load-model=good"],
    write: ({ repository }) => writeFaultyModel(repository, "good"),
  });
  port = serving.server.httpPort;
});
after(async () => {
  await serving[Symbol.asyncDispose]();
});

const edit = (from: string, to: string) => faultyConfig.replace(from, to);
const more = (text: string) => `${faultyConfig}${text}\n`;

/** `text proto|` is an error with a position in the file. NAME and REPOSITORY are those of the test. */
const broken: readonly [sentence: string, config: string, text: string][] = [
  [
    "a bracket that is never closed",
    edit("dims: [ -1 ] }\n]\noutput", "dims: [ -1 ] }\noutput"),
    "text proto|line 6, column 1: field 'input': expected ',' or ']' in the list, found 'output'",
  ],
  [
    "a value that is missing",
    edit("max_batch_size: 0", "max_batch_size:"),
    "text proto|line 3, column 1: field 'max_batch_size': expected an integer, found 'input'",
  ],
  [
    "a field that does not exist",
    more('colour: "red"'),
    "text proto|line 11, column 1: unknown field 'colour' in ModelConfig; known are name, platform, backend",
  ],
  [
    "a misspelt field",
    more("dynamic_baching { }"),
    "text proto|line 11, column 1: unknown field 'dynamic_baching' in ModelConfig; did you mean 'dynamic_batching'?",
  ],
  [
    "a field inside a message that does not exist",
    edit("dims: [ 1 ]", "dimensions: [ 1 ]"),
    "text proto|line 4, column 39: unknown field 'dimensions' in 'input[0]' (ModelInput); known are name, data_type",
  ],
  [
    "a text where a number belongs",
    edit("max_batch_size: 0", 'max_batch_size: "eight"'),
    "text proto|line 2, column 17: field 'max_batch_size': expected an integer, found string \"eight\"",
  ],
  [
    "a number where a text belongs",
    edit('name: "DO"', "name: 7"),
    "text proto|line 4, column 11: field 'input[0].name': expected a string in quotes, found integer 7",
  ],
  [
    "a number out of the range of its type",
    edit("max_batch_size: 0", "max_batch_size: 99999999999"),
    "text proto|line 2, column 17: field 'max_batch_size': expected an integer from -2147483648 to 2147483647, found integer 99999999999",
  ],
  [
    "a datatype that does not exist",
    edit("TYPE_FP32", "TYPE_FLOAT"),
    "text proto|line 5, column 30: field 'input[1].data_type': expected one of TYPE_INVALID, TYPE_BOOL",
  ],
  [
    "a text without its end",
    edit('"VALUE"', '"VALUE'),
    "text proto|line 5, column 11: field 'input[1].name': expected a string in quotes, found a string that is not closed on its line",
  ],
  [
    "bytes that are not text",
    `\u0000\u0001\u0002\uffff`,
    'text proto|line 1, column 1: expected a field name, found unexpected character "\\u0000"',
  ],
  ["a megabyte of nonsense", "x".repeat(1_000_000), "text proto|line 1, column 1: unknown field 'xxxx"],
  [
    "messages nested ten thousand deep",
    "input {".repeat(10_000),
    "text proto|line 1, column 8: unknown field 'input' in 'input[0]' (ModelInput); known are name, data_type",
  ],
  [
    "another model's name",
    more('name: "another"'),
    "failed to poll from model repository: unexpected directory name 'NAME' for model 'another', directory name must equal model name",
  ],
  [
    "a negative batch size",
    edit("max_batch_size: 0", "max_batch_size: -3"),
    "'max_batch_size' must be non-negative value for NAME",
  ],
  [
    "a backend that does not exist",
    edit('backend: "python"', 'backend: "pythn"'),
    "unable to find backend library for backend 'pythn', try specifying runtime on the model configuration. This server has: python, onnxruntime, linear_learner, sparkml, xgboost, fil.",
  ],
  ["an input without a name", edit('name: "VALUE" ', ""), "model input must specify 'name' for NAME"],
  [
    "an input without a datatype",
    edit("data_type: TYPE_FP32 ", ""),
    "model input 'VALUE' must specify 'data_type' for NAME",
  ],
  ["an input without dims", edit("dims: [ -1 ]", ""), "model input 'VALUE' must specify 'dims' for NAME"],
  [
    "a dimension of zero",
    edit("dims: [ -1 ]", "dims: [ 0 ]"),
    "model input 'VALUE' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for NAME",
  ],
  [
    "a dimension of -2",
    edit("dims: [ -1 ]", "dims: [ -2 ]"),
    "model input 'VALUE' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for NAME",
  ],
  ["two inputs of one name", edit('"VALUE"', '"DO"'), "model input 'DO' is specified more than once for NAME"],
  [
    "a reshape to another size",
    edit("dims: [ 1 ] }", "dims: [ 4 ] reshape { shape: [ 3 ] } }"),
    "model input 'DO' has different size for dims and reshape for NAME",
  ],
  [
    "a preferred batch above the largest",
    edit("max_batch_size: 0", "max_batch_size: 2\ndynamic_batching { preferred_batch_size: [ 8 ] }"),
    "dynamic batching preferred size must be <= max batch size for NAME",
  ],
  [
    "a priority greater than its levels",
    edit("max_batch_size: 0", "max_batch_size: 2\ndynamic_batching { priority_levels: 2 default_priority_level: 3 }"),
    "default priority level must be in range [1, 2] for NAME",
  ],
  [
    "two schedulers",
    edit("max_batch_size: 0", "max_batch_size: 2\ndynamic_batching { }\nsequence_batching { }"),
    "text proto|line 4, column 1: field 'sequence_batching' excludes 'dynamic_batching': only one 'scheduling_choice' can be set",
  ],
  [
    "a GPU on the CPU",
    more("instance_group { kind: KIND_CPU gpus: [ 0 ] }"),
    "instance group NAME_0 of model NAME has kind KIND_CPU but specifies one or more GPUs",
  ],
  [
    "a missing program",
    more('default_model_filename: "other.py"'),
    "Internal: other.py does not exist in the model repository path: REPOSITORY/NAME/1/other.py",
  ],
  [
    "a missing version",
    more("version_policy { specific { versions: [ 7 ] } }"),
    "load failed for model 'NAME': at least one version must be available under the version policy of model 'NAME'",
  ],
  [
    "an ensemble of a missing model",
    'platform: "ensemble"\ninput { name: "A" data_type: TYPE_FP32 dims: [ 1 ] }\noutput { name: "B" data_type: TYPE_FP32 dims: [ 1 ] }\nensemble_scheduling { step { model_name: "nobody" model_version: -1 input_map { key: "X" value: "A" } output_map { key: "Y" value: "B" } } }',
    "ensemble NAME contains models that are not available or ambiguous: nobody",
  ],
  [
    "an ensemble of itself",
    'platform: "ensemble"\ninput { name: "A" data_type: TYPE_FP32 dims: [ 1 ] }\noutput { name: "B" data_type: TYPE_FP32 dims: [ 1 ] }\nensemble_scheduling { step { model_name: "NAME" model_version: -1 input_map { key: "A" value: "A" } output_map { key: "B" value: "B" } } }',
    "load failed for model 'NAME': circular dependency between ensembles: NAME -> ... -> NAME -> NAME",
  ],
];

let count = 0;
/** Loads what `write` has put into the repository. The load is rejected and leaves no files, and the model `good` responds. */
async function refusal(write: (name: string) => Promise<void>): Promise<{ name: string; error: string }> {
  const name = `broken_${(count += 1)}`;
  await write(name);
  const response = await load(port, name);
  const error = errorOf(response, response.status === 500 ? 500 : 400);
  assert.ok(error.length < 4096, `an error of ${error.length} characters`);
  const index = await sendRequest(port, { path: "/v2/repository/index", body: "{}" });
  const models = JSON.parse(index.body.toString()) as { name: string; state?: string }[];
  assert.notEqual(models.find((model) => model.name === name)?.state, "READY");
  await assertEchoes(port, "good");
  return { name, error };
}

for (const [sentence, config, text] of broken) {
  test(`not loaded: ${sentence}`, async () => {
    const { name, error } = await refusal((model) =>
      writeFaultyModel(serving.repository, model, { config: config.replaceAll("NAME", model) }),
    );
    const path = join(serving.repository, name, "config.pbtxt");
    const expected = text
      .replace("text proto|", `failed to poll from model repository: failed to read text proto from ${path}: `)
      .replaceAll("NAME", name)
      .replaceAll("REPOSITORY", serving.repository);
    assert.ok(error.includes(expected), `${error}\n does not say \n${expected}`);
  });
}

const files: readonly [sentence: string, make: (path: string) => Promise<unknown>, why: string][] = [
  ["a directory", (path) => mkdir(path), "it is not a file"],
  ["a pipe without a writer", (path) => promisify(execFile)("mkfifo", [path]), "it is not a file"],
  ["a device without end", (path) => symlink("/dev/zero", path), "it is not a file"],
  [
    "a terabyte of nothing",
    (path) => writeFile(path, "").then(() => truncate(path, 2 ** 40)),
    "longer than 16777216 bytes",
  ],
];
for (const [sentence, make, why] of files) {
  test(`not loaded: a config.pbtxt that is ${sentence}`, async () => {
    const { name, error } = await refusal(async (model) => {
      await writeFaultyModel(serving.repository, model);
      const path = join(serving.repository, model, "config.pbtxt");
      await rm(path);
      await make(path);
    });
    const path = join(serving.repository, name, "config.pbtxt");
    assert.equal(
      error,
      `failed to load '${name}', failed to poll from model repository: failed to read text proto from ${path}: ${why}`,
    );
  });
}

const overrides: readonly [sentence: string, parameters: object, text: RegExp][] = [
  ["text that is not JSON", { config: "{" }, /Invalid config override/],
  ["a list", { config: "[]" }, /expected an object/],
  ["a field that does not exist", { config: '{"colour":"red"}' }, /colour/],
  ["a wrong type", { config: '{"max_batch_size":"many"}' }, /max_batch_size/],
  ["a file without a configuration", { "file:1/model.py": "cGFzcw==" }, /config/],
  [
    "a file that leaves the model",
    { config: "{}", "file:../x/1/model.py": "cGFzcw==" },
    /must stay within model directory/,
  ],
  ["a file that is not base64", { config: "{}", "file:1/model.py": "%%%%" }, /base64/],
];
for (const [sentence, parameters, text] of overrides) {
  test(`not loaded: an override that is ${sentence}`, async () => {
    const response = await load(port, "good", { parameters });
    assert.ok(response.status === 400 || response.status === 500, `${response.status}`);
    assert.match(response.body.toString(), text);
    await assertEchoes(port, "good");
  });
}
