import { clone, create } from "@bufbuild/protobuf";
import { applySchedulingDefaults } from "./complete-config.ts";
import { toModelConfig } from "./from-message.ts";
import { ModelConfigSchema, ModelTransactionPolicySchema } from "./message.ts";
import type { ModelConfig } from "./model-config.ts";
import { configFromJson } from "./parse-json.ts";

/**
 * Merges a backend's findings about a model into its configuration. `found` is in the configuration's JSON form: the dictionary that
 * `auto_complete_config` returns, or the tensors of an ONNX file. As in Triton, only these fields are used: max_batch_size; inputs and
 * outputs; the scheduler when none is configured; model_transaction_policy.
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
  applySchedulingDefaults(message);
  return toModelConfig(message);
}
