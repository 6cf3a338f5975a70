import assert from "node:assert/strict";
import { test } from "node:test";
import { checkConfig, checkFoundConfig } from "./check-config.ts";
import { configLimits } from "./check-limits.ts";
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
const output = `output [{ name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] }]`;

const configurations: readonly [what: string, most: number, make: (count: number) => [more: string, io?: string]][] = [
  ["instances", configLimits.instances, (count) => [`instance_group [{ count: ${count} }]`]],
  ["instances", configLimits.instances, (count) => [`instance_group [{ count: ${count - 1} }, { count: 1 }]`]],
  [
    "priority levels",
    configLimits.priorityLevels,
    (count) => [`dynamic_batching { priority_levels: ${count} default_priority_level: 1 }`],
  ],
  [
    "preferred batch sizes",
    configLimits.preferredBatchSizes,
    (count) => [`dynamic_batching { preferred_batch_size: [ ${list(count, "4")} ] }`],
  ],
  ["dims of 'X'", configLimits.dims, (count) => ["", `input ${dims(count)} ${output}`]],
  [
    "versions in its version policy",
    configLimits.versions,
    (count) => [`version_policy { specific { versions: [ ${list(count, "1")} ] } }`],
  ],
  [
    "inputs",
    configLimits.tensors,
    (count) => [
      "",
      `input [ ${Array.from({ length: count }, (_, index) => `{ name: "I${index}" data_type: TYPE_FP32 dims: [ 1 ] }`).join()} ] ${output}`,
    ],
  ],
];

for (const [what, most, make] of configurations) {
  test(`a model has ${most} ${what} at most, and more are refused before a backend is asked`, () => {
    checkConfig(complete(...make(most)));
    const message = `model 'm' asks for ${most + 1} ${what}; this server allows ${most}`;
    assert.throws(() => checkFoundConfig(complete(...make(most + 1))), { code: "INVALID_ARG", message });
  });
}

test("the largest numbers that a configuration can hold are refused as well, at once", () => {
  for (const [more, number] of [
    ["instance_group [{ count: 2147483647 }, { count: 2147483647 }]", "4294967294"],
    ["dynamic_batching { priority_levels: 18446744073709551615 default_priority_level: 1 }", "18446744073709551615"],
  ] as const)
    assert.throws(() => checkFoundConfig(complete(more)), { message: new RegExp(`asks for ${number} `) });
});

test("numbers that take nothing by their size are accepted whatever they are", () => {
  const policy =
    "default_queue_policy { max_queue_size: 4294967295 default_timeout_microseconds: 18446744073709551615 }";
  checkConfig(complete(`dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 ${policy} }`));
  checkConfig(complete("version_policy { latest { num_versions: 4294967295 } }"));
});
