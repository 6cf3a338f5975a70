import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { mergeAutoComplete } from "./auto-complete.ts";
import { completeConfig } from "./complete-config.ts";
import type { ModelConfig } from "./model-config.ts";
import { parseConfigOverride } from "./parse-json.ts";
import { parseConfigText } from "./parse-text.ts";
import { printConfigJson, printConfigJsonText } from "./print-json.ts";

function complete(pbtxt: string, versionEntries: readonly string[], name = "m", gpuCount = 0): ModelConfig {
  return completeConfig(parseConfigText(pbtxt, "f"), {
    directoryName: name,
    servedName: name,
    versionEntries,
    gpuCount,
  });
}

suite("the backend is found from the files", () => {
  const rows: readonly (readonly [string, readonly string[], string, string, string])[] = [
    ["", ["model.onnx"], "onnxruntime", "onnxruntime_onnx", "model.onnx"],
    ["", ["model.py"], "python", "", "model.py"],
    ["", ["model.savedmodel"], "tensorflow", "tensorflow_savedmodel", "model.savedmodel"],
    ["", ["model.pt"], "pytorch", "pytorch_libtorch", "model.pt"],
    ['platform: "onnxruntime_onnx"', [], "onnxruntime", "onnxruntime_onnx", "model.onnx"],
    ['backend: "onnxruntime"', ["model.py"], "onnxruntime", "onnxruntime_onnx", "model.onnx"],
    ['backend: "python" default_model_filename: "other.py"', [], "python", "", "other.py"],
    ['backend: "fil"', ["xgboost.json"], "fil", "", ""],
  ];
  for (const [pbtxt, entries, backend, platform, file] of rows) {
    test(`${pbtxt} ${entries.join()} is ${backend}`, () => {
      const config = complete(pbtxt, entries);
      assert.deepEqual([config.backend, config.platform, config.defaultModelFilename], [backend, platform, file]);
    });
  }

  test("the model name's ending decides the backend last, otherwise there is none", () => {
    const config = complete("", [], "trees.fil");
    assert.deepEqual([config.backend, config.defaultModelFilename], ["fil", "model.fil"]);
  });
});

test("default instances: two of an ONNX model on the CPU, one of other models, on GPUs if there are any", () => {
  const groups = (config: ModelConfig) => config.instanceGroups.map((group) => [group.name, group.kind, group.count]);
  assert.deepEqual(groups(complete("", ["model.onnx"])), [["m", "KIND_CPU", 2]]);
  assert.deepEqual(groups(complete("", ["model.py"])), [["m", "KIND_CPU", 1]]);
  assert.deepEqual(groups(complete("", ["model.onnx"], "m", 1)), [["m", "KIND_GPU", 1]]);
  const configured = 'instance_group [ { count: 3 }, { name: "g" kind: KIND_MODEL }, { kind: KIND_GPU } ]';
  assert.deepEqual(groups(complete(configured, ["model.onnx"])), [
    ["m_0", "KIND_CPU", 3],
    ["g", "KIND_MODEL", 1],
    ["m_2", "KIND_GPU", 1],
  ]);
});

test("KIND_AUTO of a backend without GPU support is the CPU; an explicit kind stays", () => {
  const kinds = (text: string, entry: string) =>
    completeConfig(parseConfigText(text, "f"), {
      directoryName: "m",
      servedName: "m",
      versionEntries: [entry],
      gpuCount: 2,
      cpuBackends: new Set(["onnxruntime"]),
    }).instanceGroups.map(({ kind, count }) => [kind, count]);
  assert.deepEqual(kinds("", "model.onnx"), [["KIND_CPU", 2]]);
  assert.deepEqual(kinds("", "model.py"), [["KIND_GPU", 1]]);
  const requested = "instance_group [ { kind: KIND_AUTO }, { kind: KIND_GPU }, { gpus: [ 1 ] } ]";
  assert.deepEqual(kinds(requested, "model.onnx"), [
    ["KIND_CPU", 2],
    ["KIND_GPU", 1],
    ["KIND_GPU", 1],
  ]);
});

test("a mapped model may be configured under any name and is completed under the served one", () => {
  const parsed = parseConfigText('name: "dir"', "f");
  const config = completeConfig(parsed, {
    directoryName: null,
    servedName: "t.tar.gz",
    versionEntries: ["model.py"],
    gpuCount: 0,
  });
  assert.equal(config.name, "t.tar.gz");
  assert.equal(config.instanceGroups[0]?.name, "t.tar.gz");
  assert.equal(parsed.name, "dir");
});

suite("a backend's completion", () => {
  const found = {
    name: "ignored",
    max_batch_size: 4,
    input: [{ name: "A", data_type: "TYPE_FP32", dims: [4] }],
    output: [{ name: "B", data_type: "TYPE_STRING", dims: ["-1"] }],
    dynamic_batching: {},
    instance_group: [{ count: 9 }],
    parameters: { x: { string_value: "ignored" } },
  };

  test("fills batch size, tensors and scheduler, and nothing else", () => {
    const config = mergeAutoComplete(complete("", ["model.py"]), found);
    assert.equal(config.maxBatchSize, 4);
    assert.deepEqual(config.inputs, [
      { name: "A", datatype: "FP32", dims: [4], backendDims: [4], optional: false, allowRaggedBatch: false },
    ]);
    assert.equal(config.outputs[0]?.datatype, "BYTES");
    assert.equal(config.scheduling.kind === "dynamic" && config.scheduling.preferredBatchSizes[0], 4);
    assert.deepEqual([config.name, config.instanceGroups[0]?.count, config.parameters.size], ["m", 1, 0]);
    assert.equal(printConfigJson(config)["max_batch_size"], 4);
  });

  test("leaves a configured scheduler alone", () => {
    const configured = complete("max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 7 }", ["model.py"]);
    const config = mergeAutoComplete(configured, found);
    assert.equal(config.scheduling.kind === "dynamic" && config.scheduling.queueDelayMaxUs, 7);
  });

  test("accepts the complete dictionary that was passed to the model", () => {
    const config = complete('backend: "python" max_batch_size: 2 input { name: "x" data_type: TYPE_BF16 dims: 1 }', []);
    assert.equal(printConfigJsonText(mergeAutoComplete(config, printConfigJson(config))), printConfigJsonText(config));
  });

  test("is rejected if it is no configuration", () => {
    assert.throws(() => mergeAutoComplete(complete("", ["model.py"]), { input: [{ nam: "A" }] }), {
      code: "INVALID_ARG",
      message:
        "unable to auto-complete the configuration of model 'm': no field 'nam' in 'input[0]'; did you mean 'name'?",
    });
  });
});

suite("a config override is strict JSON", () => {
  test("accepts enum names in any case, numbers as text, and both spellings of names", () => {
    const message = parseConfigOverride(
      '{"backend":"python","maxBatchSize":2,"input":[{"name":"I","data_type":"type_fp32","dims":["1",-1]}],"instance_group":[{"kind":"kind_cpu"}]}',
    );
    assert.equal(message.input[0]?.dataType, 11);
    assert.deepEqual(message.input[0]?.dims, [1n, -1n]);
    assert.equal(message.maxBatchSize, 2);
  });
  test("a single value in place of a list is a list of that value", () => {
    const message = parseConfigOverride(
      '{"input":{"name":"I","data_type":"TYPE_FP32","dims":"4"},"instance_group":{"kind":"kind_cpu","count":2},"version_policy":{"specific":{"versions":1}},"parameters":{"a":{"string_value":"b"}}}',
    );
    assert.deepEqual(message.input[0]?.dims, [4n]);
    assert.equal(message.instanceGroup[0]?.count, 2);
    assert.deepEqual(
      message.versionPolicy?.policyChoice.value,
      parseConfigOverride('{"version_policy":{"specific":{"versions":[1]}}}').versionPolicy?.policyChoice.value,
    );
    assert.equal(message.parameters["a"]?.stringValue, "b");
  });
  const rows: readonly (readonly [string, RegExp])[] = [
    ['{"instance_group":5}', /^Invalid config override: expected an object for 'instance_group', found 5$/],
    ['{"parameters":[]}', /^Invalid config override: .*parameters/],
    ["{", /^Invalid config override: Expected property name/],
    ["[]", /^Invalid config override: expected an object for ModelConfig, found \[\]$/],
    [
      '{"max_bach_size":1}',
      /^Invalid config override: no field 'max_bach_size' in ModelConfig; did you mean 'max_batch_size'\?$/,
    ],
    [
      '{"input":[{"data_type":"TYPE_FP3"}]}',
      /^Invalid config override: unknown DataType "TYPE_FP3" for 'input\[0\].data_type'; did you mean TYPE_FP32\?$/,
    ],
    ['{"max_batch_size":"x"}', /^Invalid config override: .*max_batch_size/],
  ];
  for (const [json, message] of rows) {
    test(json, () => assert.throws(() => parseConfigOverride(json), { code: "INVALID_ARG", message }));
  }
});

test("integers beyond 2^53 are printed exactly", () => {
  const config = complete(
    'backend: "python" dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }',
    [],
  );
  assert.match(printConfigJsonText(config), /"max_queue_delay_microseconds":18446744073709551615/);
});
