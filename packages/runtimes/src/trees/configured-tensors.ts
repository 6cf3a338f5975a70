import { InferenceError } from "@galatea/base";
import type { ModelConfig, OutputConfig } from "@galatea/server/modelconfig";
import type { FilParameters } from "./fil-parameters.ts";
import type { Forest } from "./forest.ts";
import { type OutputForm, predictionColumns } from "./evaluation/output-form.ts";

export const inputName = "input__0";
export const outputName = "output__0";
export const contributionsName = "treeshap_output";

/** The sizes of the tensors that a configuration declares, after their names and types have been checked. */
export interface ConfiguredTensors {
  readonly featureCount: number;
  readonly columnCount: number;
  /** Dimensions of a row's contributions; null if the configuration does not declare this output. */
  readonly contributionDims: readonly number[] | null;
}

/** Reads the tensors of a configuration. Throws InferenceError for names or types that models of this backend do not have. */
export function readTensors(config: ModelConfig): ConfiguredTensors {
  if (config.maxBatchSize < 1) {
    throw invalid(`model '${config.name}' must have a max_batch_size of at least 1: rows come in batches`);
  }
  const [input, ...moreInputs] = config.inputs;
  if (input?.name !== inputName || moreInputs.length > 0) {
    throw invalid(`model '${config.name}' must have one input, named '${inputName}'`);
  }
  const contributions = config.outputs.find((each) => each.name === contributionsName);
  const [output, ...moreOutputs] = config.outputs.filter((each) => each !== contributions);
  if (output?.name !== outputName || moreOutputs.length > 0) {
    throw invalid(
      `model '${config.name}' must have one output, named '${outputName}', and '${contributionsName}' optionally`,
    );
  }
  for (const tensor of [input, output, ...(contributions === undefined ? [] : [contributions])]) {
    if (tensor.datatype !== "FP32") {
      throw invalid(`tensor '${tensor.name}' of model '${config.name}' must be TYPE_FP32, not TYPE_${tensor.datatype}`);
    }
  }
  return {
    featureCount: elementsOf(config, input),
    columnCount: elementsOf(config, output),
    contributionDims: contributions?.backendDims ?? null,
  };
}

function elementsOf(config: ModelConfig, tensor: Pick<OutputConfig, "name" | "backendDims">): number {
  const { backendDims } = tensor;
  const [dim] = backendDims;
  if (dim === undefined || backendDims.length !== 1 || dim < 1) {
    throw invalid(
      `tensor '${tensor.name}' of model '${config.name}' must have one dimension of fixed size, not [${backendDims.join()}]`,
    );
  }
  return dim;
}

/** Returns the form of the model's outputs. Throws InferenceError if the trees do not match the dimensions in the configuration. */
export function chooseOutputForm(
  forest: Pick<Forest, "featureCount" | "outputCount">,
  parameters: Pick<FilParameters, "isClassifier" | "predictProba" | "threshold">,
  configured: ConfiguredTensors,
): OutputForm {
  if (forest.featureCount !== configured.featureCount) {
    throw invalid(
      `the trees have ${forest.featureCount} features, but the configuration declares '${inputName}' ${configured.featureCount}`,
    );
  }
  const { contributionDims } = configured;
  if (contributionDims !== null) {
    const dims = [forest.outputCount, forest.featureCount + 1].filter((dim) => dim !== 1);
    if (contributionDims.filter((dim) => dim !== 1).join() !== dims.join()) {
      throw invalid(
        `the trees return for each row contributions of shape [${dims.join()}], but the configuration declares '${contributionsName}' [${contributionDims.join()}]`,
      );
    }
  }
  const outputForm = outputFormOf(forest.outputCount, parameters, configured.columnCount);
  const columnCount = predictionColumns(forest, outputForm);
  if (columnCount !== configured.columnCount) {
    throw invalid(
      `the trees return ${columnCount} numbers for each row, but the configuration declares '${outputName}' ${configured.columnCount}`,
    );
  }
  return outputForm;
}

function outputFormOf(
  outputCount: number,
  { isClassifier, predictProba, threshold }: Pick<FilParameters, "isClassifier" | "predictProba" | "threshold">,
  columnCount: number,
): OutputForm {
  if (!isClassifier) return { kind: "scores" };
  if (predictProba) return outputCount === 1 && columnCount === 2 ? { kind: "both-classes" } : { kind: "scores" };
  return outputCount === 1 ? { kind: "above", threshold } : { kind: "best-class" };
}

function invalid(message: string): InferenceError {
  return new InferenceError("INVALID_ARG", message);
}
