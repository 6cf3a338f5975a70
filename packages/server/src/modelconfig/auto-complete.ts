import { clone, create } from "@bufbuild/protobuf";
import { normaliseScheduling } from "./complete-config.ts";
import { toModelConfig } from "./from-message.ts";
import { ModelConfigSchema, ModelTransactionPolicySchema } from "./message.ts";
import type { ModelConfig } from "./model-config.ts";
import { configFromJson } from "./parse-json.ts";

/**
 * Merges a backend's findings about a model, in the configuration's JSON form (`auto_complete_config` returns the whole dictionary, the
 * ONNX file gives tensors). Only fields that a backend may complete are used: max_batch_size; input and output as given; the scheduler
 * when none is configured; model_transaction_policy. All other fields stay as configured, as in Triton.
 */
export function mergeAutoComplete(config: ModelConfig, found: Readonly<Record<string, unknown>>): ModelConfig {
  const completed = configFromJson(found, `unable to auto-complete the configuration of model '${config.name}'`);
  const message = clone(ModelConfigSchema, config.message);
  if (Object.hasOwn(found, "max_batch_size")) message.maxBatchSize = completed.maxBatchSize;
  if (Object.hasOwn(found, "input")) message.input = completed.input;
  if (Object.hasOwn(found, "output")) message.output = completed.output;
  if (message.schedulingChoice.case === undefined) message.schedulingChoice = completed.schedulingChoice;
  if (completed.modelTransactionPolicy !== undefined) {
    message.modelTransactionPolicy = create(ModelTransactionPolicySchema, {
      decoupled: completed.modelTransactionPolicy.decoupled,
    });
  }
  normaliseScheduling(message);
  return toModelConfig(message);
}
