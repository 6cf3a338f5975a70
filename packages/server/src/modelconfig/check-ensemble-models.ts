import type { Datatype } from "../tensor/index.ts";
import { datatypes } from "../tensor/index.ts";
import { checkDecoupledOrigins, withDecoupled } from "./check-decoupled-origins.ts";
import type { EnsembleStepConfig, ModelConfig } from "./model-config.ts";
import { throwInvalidConfig } from "./invalid-config.ts";

interface TensorFact {
  readonly model: string;
  readonly datatype: Datatype;
  readonly dims: readonly number[];
  readonly batches: boolean;
}

/**
 * Checks an ensemble against the completed configurations of its steps' models. `composing` maps the name of every step's model to its
 * configuration. Returns the ensemble's configuration with `decoupled` set as its steps require, regardless of its own setting.
 */
export function checkEnsembleModels(config: ModelConfig, composing: ReadonlyMap<string, ModelConfig>): ModelConfig {
  if (config.scheduling.kind !== "ensemble") return config;
  const facts = new Map<string, TensorFact>();
  for (const tensor of [...config.inputs, ...config.outputs]) facts.set(tensor.name, factOf(tensor, config));
  for (const step of config.scheduling.steps) {
    const model = composing.get(step.modelName);
    if (model === undefined) {
      throwInvalidConfig(
        `ensemble ${config.name} contains models that are not available or ambiguous: ${step.modelName}`,
      );
    }
    // The limit does not apply to a step that does not batch: the batch is part of the step's shapes.
    if (model.maxBatchSize > 0 && model.maxBatchSize < config.maxBatchSize) {
      throwInvalidConfig(
        `ensemble ${config.name} allows maximum batch size ${config.maxBatchSize}, but it contains model ${model.name} ` +
          `which only allows maximum batch size to be ${model.maxBatchSize}`,
      );
    }
    checkMappedInputs(config.name, step, model);
    const check = (tensorName: string, tensor: ModelConfig["inputs"][number] | ModelConfig["outputs"][number]) => {
      const fact = factOf(tensor, model);
      const known = facts.get(tensorName);
      if (known === undefined) facts.set(tensorName, fact);
      else checkConsistent(config.name, tensorName, known, fact);
    };
    for (const input of model.inputs) {
      const tensorName = step.inputMap.get(input.name);
      if (tensorName !== undefined) check(tensorName, input);
      else if (!input.optional) {
        throwInvalidConfig(
          `in ensemble ${config.name}, input ${input.name} in model ${model.name} is not mapped to any ensemble tensors`,
        );
      }
    }
    checkMappedOutputs(config.name, step, model);
    for (const output of model.outputs) {
      const tensorName = step.outputMap.get(output.name);
      if (tensorName !== undefined) check(tensorName, output);
    }
  }
  return withDecoupled(config, checkDecoupledOrigins(config, composing));
}

function checkMappedInputs(ensemble: string, step: EnsembleStepConfig, model: ModelConfig): void {
  for (const [input, tensor] of step.inputMap) {
    if (!model.inputs.some((known) => known.name === input)) {
      throwInvalidConfig(
        `in ensemble ${ensemble}, ensemble tensor ${tensor} is mapping to non-existing input ${input} in model ${model.name}`,
      );
    }
  }
}

function checkMappedOutputs(ensemble: string, step: EnsembleStepConfig, model: ModelConfig): void {
  const written = new Set<string>();
  for (const [output, tensor] of step.outputMap) {
    if (!model.outputs.some((known) => known.name === output)) {
      throwInvalidConfig(
        `in ensemble ${ensemble}, ensemble tensor ${tensor} is mapped from non-existing output ${output} in model ${model.name}`,
      );
    }
    if (written.has(tensor)) {
      throwInvalidConfig(
        `in ensemble ${ensemble}, multiple outputs in model ${model.name} are mapped to the same ensemble tensor ${tensor}`,
      );
    }
    written.add(tensor);
  }
}

function factOf(tensor: { datatype: Datatype; dims: readonly number[] }, model: ModelConfig): TensorFact {
  return { model: model.name, datatype: tensor.datatype, dims: tensor.dims, batches: model.maxBatchSize > 0 };
}

function checkConsistent(ensemble: string, tensor: string, known: TensorFact, found: TensorFact): void {
  const where = `in ensemble ${ensemble}, ensemble tensor ${tensor}:`;
  if (known.datatype !== found.datatype) {
    throwInvalidConfig(
      `${where} inconsistent data type: ${datatypes[known.datatype].configName} is inferred from model ${known.model} ` +
        `while ${datatypes[found.datatype].configName} is inferred from model ${found.model}`,
    );
  }
  if (sameShape(known, found)) return;
  const print = (fact: TensorFact) => `[${fullDims(fact).join(",")}]`;
  throwInvalidConfig(
    `${where} inconsistent shape: ${print(known)} is inferred from model ${known.model} ` +
      `while ${print(found)} is inferred from model ${found.model}`,
  );
}

/** Returns whether two shapes agree. The shape of a model that batches may match the other one with or without its batch dimension. */
function sameShape(known: TensorFact, found: TensorFact): boolean {
  if (matches(known.dims, found.dims)) return true;
  return known.batches !== found.batches && matches(fullDims(known), fullDims(found));
}

const fullDims = (fact: TensorFact): readonly number[] => (fact.batches ? [-1, ...fact.dims] : fact.dims);

/** Returns whether two shapes of equal rank agree; a variable dimension matches every size. */
function matches(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((dim, i) => dim === b[i] || dim === -1 || b[i] === -1);
}
