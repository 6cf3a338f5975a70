import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { InferenceError } from "@galatea/base";
import { checkConfig } from "./check-config.ts";
import { checkEnsembleModels } from "./check-ensemble-models.ts";
import { completeConfig } from "./complete-config.ts";
import type { ModelConfig } from "./model-config.ts";
import { parseConfigText } from "./parse-text.ts";
import { rejectUnsupported } from "./unsupported-features.ts";

interface Refused {
  readonly pbtxt: string;
  readonly message: string;
}

const golden = JSON.parse(readFileSync(new URL("./golden/refused-configs.json", import.meta.url), "utf8")) as {
  readonly refused: Readonly<Record<string, Refused>>;
  readonly composing: Readonly<Record<string, string>>;
  readonly refusedEnsembles: Readonly<Record<string, Refused>>;
};

function complete(name: string, pbtxt: string): ModelConfig {
  return completeConfig(parseConfigText(pbtxt, "config.pbtxt"), {
    directoryName: name,
    servedName: name,
    versionEntries: name === "nobackend" ? [] : ["model.py"],
    gpuCount: 0,
  });
}

suite("a broken configuration is refused with Triton's sentence", () => {
  for (const [name, { pbtxt, message }] of Object.entries(golden.refused)) {
    test(`${name}: ${message}`, () => {
      assert.throws(() => checkConfig(complete(name, pbtxt)), new InferenceError("INVALID_ARG", message));
    });
  }
});

suite("an ensemble that does not fit its models is refused with Triton's sentence", () => {
  const composing = new Map(Object.entries(golden.composing).map(([name, pbtxt]) => [name, complete(name, pbtxt)]));
  for (const [name, { pbtxt, message }] of Object.entries(golden.refusedEnsembles)) {
    test(`${name}: ${message}`, () => {
      const config = complete(name, pbtxt);
      checkConfig(config);
      assert.throws(() => checkEnsembleModels(config, composing), new InferenceError("INVALID_ARG", message));
    });
  }
});

test("an ensemble with batching may have a step without batching", () => {
  const tensors = (dims: string) =>
    `input { name: "I" data_type: TYPE_FP32 dims: [ ${dims} ] } output { name: "O" data_type: TYPE_FP32 dims: [ ${dims} ] }`;
  const map = 'input_map { key: "I" value: "I" } output_map { key: "O" value: "O" }';
  const steps = `ensemble_scheduling { step { model_name: "plain" model_version: -1 ${map} } }`;
  const ensemble = complete("e", `platform: "ensemble" max_batch_size: 2 ${tensors("3")} ${steps}`);
  const plain = (dims: string) => new Map([["plain", complete("plain", `backend: "python" ${tensors(dims)}`)]]);
  checkEnsembleModels(ensemble, plain("-1, -1"));
  assert.throws(() => checkEnsembleModels(ensemble, plain("2, 4")), /inconsistent shape: \[-1,3\] .* while \[2,4\]/);
});

suite("responses of decoupled steps", () => {
  const tensors =
    'input { name: "A" data_type: TYPE_FP32 dims: 1 } input { name: "B" data_type: TYPE_FP32 dims: 1 optional: true } output { name: "O" data_type: TYPE_FP32 dims: 1 }';
  const composing = new Map([
    ["one", complete("one", `backend: "python" ${tensors}`)],
    ["many", complete("many", `backend: "python" ${tensors} model_transaction_policy { decoupled: true }`)],
  ]);
  /**
   * `"many: I>X"` is a step of the model `many` that reads tensor I and writes tensor X. A second tensor that it reads is connected to its
   * input B.
   */
  const ensemble = (steps: readonly string[], more = "") => {
    const written = steps.map((step) => {
      const [model = "", read = "", created = ""] = step.split(/: |>/);
      const inputs = read.split(",").map((tensor, at) => `input_map { key: "${"AB"[at]}" value: "${tensor}" }`);
      return `step { model_name: "${model}" model_version: -1 ${inputs.join(" ")} output_map { key: "O" value: "${created}" } }`;
    });
    const input = 'input { name: "I" data_type: TYPE_FP32 dims: 1 } output { name: "R" data_type: TYPE_FP32 dims: 1 }';
    return complete("e", `platform: "ensemble" ${input} ensemble_scheduling { ${written.join(" ")} } ${more}`);
  };

  test("an ensemble is decoupled if one of its steps is, whatever its configuration says, in any order of steps", () => {
    const policy = (decoupled: boolean) => `model_transaction_policy { decoupled: ${decoupled} }`;
    for (const [config, decoupled] of [
      [ensemble(["one: I>R"], policy(true)), false],
      [ensemble(["many: I>R"], policy(false)), true],
      [ensemble(["one: X>R", "many: I>X"]), true],
      [ensemble(["many: I>X", "one: X>Y", "one: Y,X>R"]), true],
      [ensemble(["many: I>X", "many: X>R"]), true],
    ] as const) {
      const checked = checkEnsembleModels(config, composing);
      assert.deepEqual([checked.decoupled, checked.message.modelTransactionPolicy?.decoupled], [decoupled, decoupled]);
    }
  });

  test("a step that reads responses of different origins is rejected (tritonserver 2.51)", () => {
    for (const [steps, namer] of [
      [["many: I>X", "one: X,I>R"], "e"],
      [["many: I>X", "one: X,I>Y", "one: Y>R"], "one"],
      [["many: I>X", "many: I>Y", "one: X,Y>R"], "e"],
      [["many: I>X", "many: X>Y", "one: X,Y>R"], "e"],
    ] as const)
      assert.throws(() => checkEnsembleModels(ensemble(steps), composing), {
        message: `in ensemble e, step of model '${namer}' receives inputs originated from different decoupled models`,
      });
  });
});

test("of several errors at an ensemble step, a wrong shape is reported before an unmapped input", () => {
  const two = 'input { name: "A" data_type: TYPE_FP32 dims: 4 } input { name: "B" data_type: TYPE_FP32 dims: 4 }';
  const output = 'output { name: "O" data_type: TYPE_FP32 dims: 4 }';
  const map = 'input_map { key: "A" value: "I" } output_map { key: "O" value: "O" }';
  const steps = `ensemble_scheduling { step { model_name: "two" model_version: -1 ${map} } }`;
  const ensemble = (dims: string) =>
    complete("e", `platform: "ensemble" input { name: "I" data_type: TYPE_FP32 dims: ${dims} } ${output} ${steps}`);
  const composing = new Map([["two", complete("two", `backend: "python" ${two} ${output}`)]]);
  assert.throws(() => checkEnsembleModels(ensemble("1"), composing), /ensemble tensor I: inconsistent shape/);
  assert.throws(() => checkEnsembleModels(ensemble("4"), composing), /input B in model two is not mapped/);
});

suite("fields that are not implemented are rejected by name", () => {
  const io = 'input { name: "I" data_type: TYPE_FP32 dims: 1 } output { name: "O" data_type: TYPE_FP32 dims: 1 }';
  const rows: readonly (readonly [string, string])[] = [
    ["sequence_batching", "sequence_batching { }"],
    ["response_cache", "response_cache { enable: true }"],
    ["model_repository_agents", 'model_repository_agents { agents { name: "a" } }'],
    ["batch_input", 'batch_input { source_input: "I" data_type: TYPE_FP32 }'],
    ["batch_output", 'batch_output { source_input: "I" target_name: "O" }'],
    ["instance_group.rate_limiter.resources", 'instance_group { rate_limiter { resources { name: "R" count: 1 } } }'],
  ];
  for (const [field, pbtxt] of rows) {
    test(field, () => {
      const config = complete("m", `backend: "python" max_batch_size: 4 ${io} ${pbtxt}`);
      assert.throws(() => rejectUnsupported(config), {
        code: "UNSUPPORTED",
        message: `model 'm' uses '${field}', which this server does not support yet; the model is not loaded rather than served without it`,
      });
    });
  }

  test("ragged batches are accepted only by backends that see each request's own tensors", () => {
    const ragged = io.replace("dims: 1 }", "dims: -1 allow_ragged_batch: true }");
    const of = (backend: string) => complete("m", `backend: "${backend}" max_batch_size: 4 ${ragged}`);
    for (const backend of ["python", "dali", "own", "tensorflow"]) rejectUnsupported(of(backend));
    for (const backend of ["onnxruntime", "fil", "pytorch"])
      assert.throws(
        () => rejectUnsupported(of(backend)),
        /^InferenceError: model 'm' uses 'input\.allow_ragged_batch'/,
      );
  });

  test("the TensorFlow backend creates the tensors of ragged batches", () => {
    const tensors =
      'batch_input { source_input: "I" data_type: TYPE_FP32 } batch_output { source_input: "I" target_name: "O" }';
    rejectUnsupported(complete("m", `platform: "tensorflow_graphdef" max_batch_size: 4 ${io} ${tensors}`));
  });

  test("hints that change only speed are accepted", () => {
    const hints =
      "optimization { priority: PRIORITY_MAX cuda { graphs: true } eager_batching: true } " +
      'instance_group { host_policy: "cpu" rate_limiter { priority: 2 } } metric_tags { key: "a" value: "b" }';
    rejectUnsupported(complete("m", `backend: "python" ${io} ${hints}`));
  });
});
