import assert from "node:assert/strict";
import { toText } from "@bufbuild/protobuf/txtpb";
import * as fc from "fast-check";
import { InferenceError } from "@galatea/base";
import {
  checkConfig,
  checkFoundConfig,
  completeConfig,
  configTextBytesMax,
  parseConfigText,
  printConfigJsonText,
  readConfigText,
  rejectUnsupported,
} from "@galatea/server/modelconfig";
import { ModelConfigSchema } from "../../../packages/server/src/modelconfig/message.ts";
import { mutated } from "../mutations.ts";
import type { FuzzTarget } from "../target.ts";

/** Typical configurations, and their elements. */
const corpus = [
  `name: "m" backend: "python" max_batch_size: 8
input [ { name: "I" data_type: TYPE_FP32 dims: [ -1, 4 ] optional: true reshape { shape: [ 4 ] } } ]
output [ { name: "O" data_type: TYPE_STRING dims: [ 1 ] label_filename: "labels.txt" } ]
instance_group [ { count: 2 kind: KIND_CPU }, { name: "g" kind: KIND_GPU gpus: [ 0, 1 ] } ]
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 priority_levels: 2 default_priority_level: 1
  priority_queue_policy { key: 1 value: { timeout_action: DELAY default_timeout_microseconds: 5 max_queue_size: 3 } } }
version_policy { specific { versions: [ 1, 3 ] } }`,
  `platform: "ensemble" max_batch_size: 0
input { name: "A" data_type: TYPE_INT64 dims: 1 } output { name: "B" data_type: TYPE_INT64 dims: 1 }
ensemble_scheduling { step [ { model_name: "x" model_version: -1 input_map { key: "I" value: "A" } output_map { key: "O" value: "B" } } ] }`,
  `backend: 'onnxruntime' default_model_filename: "a\\x62.onnx"
parameters { key: "intra_op_thread_count" value: { string_value: "2" } }
optimization { execution_accelerators { cpu_execution_accelerator [ { name: "openvino" } ] } cuda { graphs: false } }
model_warmup [ { name: "w" batch_size: 1 count: 2 inputs { key: "I" value: { data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } } } ]`,
  `backend: "python" sequence_batching { max_sequence_idle_microseconds: 5 direct { } control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ] }
model_transaction_policy { decoupled: true } response_cache { enable: true } # the end`,
].map((text) => Buffer.from(text));

const words = [
  ...Array.from("{}[]<>:,;#\"'\\- \n\t\0."),
  "0x",
  "1e999",
  "nan",
  "-inf",
  "18446744073709551616",
  "-9223372036854775808",
  '"\\777"',
  '"\\xff"',
  "\\u{110000}",
  "__proto__",
  "constructor",
  " name: 'x' ",
  " input { } ",
  " parameters { } ",
  " dims: [ 0, -2, 9223372036854775807 ] ",
  " max_batch_size: -1 ",
  " instance_group { count: 2147483647 } ",
  " ensemble_scheduling { } ",
  "optimization { ".repeat(40),
  "[type.googleapis.com/x] { }",
  Uint8Array.of(0xed, 0xa0, 0x80),
];

const spoken = fc
  .array(fc.constantFrom(...words.map((word) => Buffer.from(word)), ...corpus), { maxLength: 12 })
  .map((chunks) => Buffer.concat(chunks));

/** Passes config.pbtxt through the part of a load that accesses neither files nor backends. */
export const configText: FuzzTarget<Buffer> = {
  name: "config-text",
  about: "config.pbtxt: parse, complete, check, print",
  share: 0.171,
  inputs: fc.oneof(
    { weight: 5, arbitrary: mutated(fc.constantFrom(...corpus), words) },
    { weight: 1, arbitrary: spoken },
  ),
  open: () => Promise.resolve({ attempt, [Symbol.asyncDispose]: () => Promise.resolve() }),
};

function attempt(bytes: Buffer): boolean {
  const text = bytes.toString("utf8");
  const { message, problems } = readConfigText(text);
  assert.equal(message === null, problems.length > 0);
  assert.ok(problems.length <= 100 && problems.every(({ line, column }) => line >= 1 && column >= 1));
  if (message === null) return false;
  try {
    const context = { directoryName: "m", servedName: "m", versionEntries: ["model.py", "model.onnx"], gpuCount: 0 };
    const config = completeConfig(message, context);
    const printed = toText(ModelConfigSchema, config.message);
    const again = completeConfig(parseConfigText(printed, "printed"), context);
    if (printed.length <= configTextBytesMax) assert.equal(toText(ModelConfigSchema, again.message), printed);
    JSON.parse(printConfigJsonText(config));
    checkFoundConfig(config);
    checkConfig(config);
    rejectUnsupported(config);
    return true;
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    assert.doesNotMatch(error.message, /from printed:/);
    return false;
  }
}
