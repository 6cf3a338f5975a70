import { InferenceError } from "@galatea/base";
import type { ModelConfig } from "../../modelconfig/index.ts";
import type { OnnxValueInfo } from "../../native/index.ts";
import { datatypes } from "../../tensor/index.ts";
import { datatypeOfValue } from "./element-types.ts";

export interface ModelValues {
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
}

/** Checks a configuration against the inputs and outputs of the model file. Throws INVALID_ARG with Triton's text. */
export function checkModel(config: ModelConfig, model: ModelValues): void {
  if (config.inputs.length !== model.inputs.length) {
    throw invalid(
      `unable to load model '${config.name}', configuration expects ${config.inputs.length} inputs, model provides ${model.inputs.length}`,
    );
  }
  for (const input of config.inputs) checkValue(config, input, { side: "input", values: model.inputs });
  for (const output of config.outputs) checkValue(config, output, { side: "output", values: model.outputs });
}

function checkValue(
  config: ModelConfig,
  tensor: ModelConfig["inputs"][number] | ModelConfig["outputs"][number],
  { side, values }: { side: "input" | "output"; values: readonly OnnxValueInfo[] },
): void {
  const value = values.find((each) => each.name === tensor.name);
  if (value === undefined) {
    const allowed = values.map((each) => each.name).join(", ");
    throw invalid(`unexpected inference ${side} '${tensor.name}', allowed ${side}s are: ${allowed}`);
  }
  const datatype = datatypeOfValue(config.name, value);
  if (datatype !== tensor.datatype) {
    throw invalid(
      `unable to load model '${config.name}', configuration expects datatype ${datatypes[tensor.datatype].configName} for ` +
        `${side} '${tensor.name}', model provides ${datatypes[datatype].configName}`,
    );
  }
  checkDims(config, tensor.name, { model: value.dims, configured: tensor.backendDims });
}

function checkDims(
  config: ModelConfig,
  name: string,
  { model, configured }: { model: readonly number[]; configured: readonly number[] },
): void {
  const batches = config.maxBatchSize > 0;
  if (batches && model[0] !== -1) {
    throw invalid(
      `unable to load model '${config.name}', model configuration supports batching but first dimension of tensor '${name}' ` +
        `expected by framework is not a variable-size batch dimension: ${shapeText(model)} whereas model configuration shape is: ` +
        shapeText([-1, ...configured]),
    );
  }
  const full = batches ? [-1, ...configured] : configured;
  const agrees =
    model.length === full.length && model.every((dim, axis) => dim === -1 || full[axis] === -1 || dim === full[axis]);
  if (agrees) return;
  const found = batches
    ? `an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape ${shapeText(full)}`
    : `shape ${shapeText(full)}`;
  throw invalid(
    `model '${config.name}', tensor '${name}': the model expects ${model.length} dimensions (shape ${shapeText(model)}) but the ` +
      `model configuration specifies ${full.length} dimensions (${found})`,
  );
}

export function shapeText(shape: readonly number[]): string {
  return `[${shape.join(",")}]`;
}

function invalid(message: string): InferenceError {
  return new InferenceError("INVALID_ARG", message);
}
