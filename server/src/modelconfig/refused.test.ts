import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { InferenceError } from "../base/index.ts";
import { checkConfig } from "./check-config.ts";
import { checkEnsembleModels } from "./check-ensemble-models.ts";
import { completeConfig } from "./complete-config.ts";
import type { ModelConfig } from "./model-config.ts";
import { parseConfigText } from "./parse-text.ts";
import { refuseUnbuilt } from "./unbuilt.ts";

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

suite("a broken configuration is refused with the original's sentence", () => {
  for (const [name, { pbtxt, message }] of Object.entries(golden.refused)) {
    test(`${name}: ${message}`, () => {
      assert.throws(() => checkConfig(complete(name, pbtxt)), new InferenceError("INVALID_ARG", message));
    });
  }
});

suite("an ensemble that does not fit its models is refused with the original's sentence", () => {
  const composing = new Map(Object.entries(golden.composing).map(([name, pbtxt]) => [name, complete(name, pbtxt)]));
  for (const [name, { pbtxt, message }] of Object.entries(golden.refusedEnsembles)) {
    test(`${name}: ${message}`, () => {
      const config = complete(name, pbtxt);
      checkConfig(config);
      assert.throws(() => checkEnsembleModels(config, composing), new InferenceError("INVALID_ARG", message));
    });
  }
});

suite("what is not built yet is refused by name", () => {
  const io = 'input { name: "I" data_type: TYPE_FP32 dims: 1 } output { name: "O" data_type: TYPE_FP32 dims: 1 }';
  const rows: readonly (readonly [string, string])[] = [
    ["sequence_batching", "sequence_batching { }"],
    ["model_transaction_policy.decoupled", "model_transaction_policy { decoupled: true }"],
    ["response_cache", "response_cache { enable: true }"],
    ["model_warmup", 'model_warmup { name: "w" }'],
    ["model_repository_agents", 'model_repository_agents { agents { name: "a" } }'],
    ["batch_input", 'batch_input { source_input: "I" data_type: TYPE_FP32 }'],
    ["batch_output", 'batch_output { source_input: "I" target_name: "O" }'],
    ["instance_group.rate_limiter.resources", 'instance_group { rate_limiter { resources { name: "R" count: 1 } } }'],
  ];
  for (const [field, pbtxt] of rows) {
    test(field, () => {
      const config = complete("m", `backend: "python" max_batch_size: 4 ${io} ${pbtxt}`);
      assert.throws(() => refuseUnbuilt(config), {
        code: "UNSUPPORTED",
        message: `model 'm' uses '${field}', which this server does not support yet; the model is not loaded rather than served without it`,
      });
    });
  }

  test("hints that change only speed are accepted", () => {
    const hints =
      "optimization { priority: PRIORITY_MAX cuda { graphs: true } eager_batching: true } " +
      'instance_group { host_policy: "cpu" rate_limiter { priority: 2 } } metric_tags { key: "a" value: "b" }';
    refuseUnbuilt(complete("m", `backend: "python" ${io} ${hints}`));
  });
});
