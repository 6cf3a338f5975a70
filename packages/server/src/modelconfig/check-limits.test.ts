import assert from "node:assert/strict";
import { test } from "node:test";
import { checkConfig, checkFoundConfig } from "./check-config.ts";
import { checkLimits } from "./check-limits.ts";
import { completeConfig } from "./complete-config.ts";
import type { ModelConfig } from "./model-config.ts";
import { parseConfigText } from "./parse-text.ts";

const tensors = `input [{ name: "IN" data_type: TYPE_FP32 dims: [ 1 ] }] output [{ name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] }]`;

function complete(more: string, io = tensors): ModelConfig {
  return completeConfig(parseConfigText(`backend: "python" max_batch_size: 8 ${io} ${more}`, "config.pbtxt"), {
    directoryName: "m",
    servedName: "m",
    versionEntries: ["model.py"],
    gpuCount: 0,
  });
}

const list = (count: number, text: string) => Array.from({ length: count }, () => text).join(", ");
const dims = (count: number) => `[{ name: "X" data_type: TYPE_FP32 dims: [ ${list(count, "1")} ] }]`;
const named = (count: number) =>
  `[ ${Array.from({ length: count }, (_, index) => `{ name: "T${index}" data_type: TYPE_FP32 dims: [ 1 ] }`).join()} ]`;
const reshaped = (count: number) =>
  `[{ name: "X" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ${list(count, "1")} ] } }]`;
const input = `input [{ name: "IN" data_type: TYPE_FP32 dims: [ 1 ] }]`;
const output = `output [{ name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] }]`;

const configurations: readonly [what: string, most: number, make: (count: number) => [more: string, io?: string]][] = [
  ["instances", 1024, (count) => [`instance_group [{ count: ${count} }]`]],
  ["instances", 1024, (count) => [`instance_group [{ count: ${count - 1} }, { count: 1 }]`]],
  ["priority levels", 1024, (count) => [`dynamic_batching { priority_levels: ${count} default_priority_level: 1 }`]],
  ["preferred batch sizes", 1024, (count) => [`dynamic_batching { preferred_batch_size: [ ${list(count, "4")} ] }`]],
  ["dims of 'X'", 32, (count) => ["", `input ${dims(count)} ${output}`]],
  [
    "versions in its version policy",
    4096,
    (count) => [`version_policy { specific { versions: [ ${list(count, "1")} ] } }`],
  ],
  ["dims of the reshape of 'X'", 32, (count) => ["", `input ${reshaped(count)} ${output}`]],
  ["inputs", 4096, (count) => ["", `input ${named(count)} ${output}`]],
  ["outputs", 4096, (count) => ["", `${input} output ${named(count)}`]],
];

for (const [what, most, make] of configurations) {
  test(`a model has at most ${most} ${what}, and more are rejected before the backend is opened`, () => {
    checkConfig(complete(...make(most)));
    const message = `model 'm' has ${most + 1} ${what}; this server allows ${most}`;
    assert.throws(() => checkFoundConfig(complete(...make(most + 1))), { code: "INVALID_ARG", message });
  });
}

test("the largest numbers that a configuration can hold are rejected at once", () => {
  for (const [more, number] of [
    ["instance_group [{ count: 2147483647 }, { count: 2147483647 }]", "4294967294"],
    ["dynamic_batching { priority_levels: 18446744073709551615 default_priority_level: 1 }", "18446744073709551615"],
  ] as const)
    assert.throws(() => checkFoundConfig(complete(more)), { message: new RegExp(`has ${number} `) });
});

test("numbers whose size costs nothing are accepted", () => {
  const policy =
    "default_queue_policy { max_queue_size: 4294967295 default_timeout_microseconds: 18446744073709551615 }";
  checkConfig(complete(`dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 ${policy} }`));
  checkConfig(complete("version_policy { latest { num_versions: 4294967295 } }"));
});

test("an ensemble has at most 1024 steps", () => {
  const ensemble = (count: number) => {
    const step = `{ model_name: "a" model_version: -1 input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } }`;
    const text = `name: "m" platform: "ensemble" ${tensors} ensemble_scheduling { step [ ${list(count, step)} ] }`;
    return parseConfigText(text, "config.pbtxt");
  };
  checkLimits(ensemble(1024));
  assert.throws(() => checkLimits(ensemble(1025)), {
    code: "INVALID_ARG",
    message: "model 'm' has 1025 ensemble steps; this server allows 1024",
  });
});
