import { InferenceError } from "@galatea/base";
import type { ModelConfig } from "../../modelconfig/index.ts";
import type { OnnxValueInfo } from "../../native/index.ts";
import { datatypes } from "../../tensor/index.ts";
import type { ModelValues } from "./check-model.ts";
import { datatypeOfValue } from "./element-types.ts";

const batchSizeDefault = 4;

/**
 * Returns the fields that a model file adds to its configuration, in the configuration's JSON form. As in Triton, inputs or outputs are
 * added if the whole list is empty. The batch size and dynamic batching are added if every input and output has a dynamic first dimension.
 * Throws INVALID_ARG if the configuration sets a batch size and the model cannot batch.
 */
export function completeFromModelFile(
  config: ModelConfig,
  model: ModelValues,
  backendConfig: ReadonlyMap<string, string>,
): Readonly<Record<string, unknown>> {
  const batchable = [...model.inputs, ...model.outputs].every((value) => value.dims[0] === -1);
  if (!batchable && config.maxBatchSize > 0) {
    throw new InferenceError(
      "INVALID_ARG",
      `autofill failed for model '${config.name}': model does not support batching while non-zero max_batch_size is specified`,
    );
  }
  const addsBatching = batchable && config.maxBatchSize === 0;
  const maxBatchSize = addsBatching ? defaultBatchSize(backendConfig) : config.maxBatchSize;
  const described = (values: readonly OnnxValueInfo[]) =>
    values.map((value) => describe(config.name, value, maxBatchSize > 0));
  return {
    ...(addsBatching ? { max_batch_size: maxBatchSize } : {}),
    ...(config.inputs.length === 0 ? { input: described(model.inputs) } : {}),
    ...(config.outputs.length === 0 ? { output: described(model.outputs) } : {}),
    ...(addsBatching && maxBatchSize > 1 ? { dynamic_batching: {} } : {}),
  };
}

function describe(modelName: string, value: OnnxValueInfo, batches: boolean) {
  const dims = batches ? value.dims.slice(1) : value.dims;
  const data_type = datatypes[datatypeOfValue(modelName, value)].configName;
  // The dims of a configuration are never empty: a scalar has dims [1], with a reshape to [].
  if (dims.length === 0) return { name: value.name, data_type, dims: [1], reshape: { shape: [] } };
  return { name: value.name, data_type, dims };
}

function defaultBatchSize(backendConfig: ReadonlyMap<string, string>): number {
  const text = backendConfig.get("default-max-batch-size");
  if (text === undefined) return batchSizeDefault;
  if (!/^\d{1,9}$/.test(text)) {
    throw new InferenceError(
      "INVALID_ARG",
      `--backend-config default-max-batch-size: '${text}' is not a valid batch size`,
    );
  }
  return Number(text);
}
