import { assert } from "@galatea/base";
import type { ModelConfig } from "../modelconfig/index.ts";

/** Index of a tensor in an ensemble's graph. */
type TensorIndex = number;

export interface GraphStep {
  /** Index in the configuration. */
  readonly index: number;
  readonly modelName: string;
  /** Required version of the step's model; -1 for the latest version. */
  readonly modelVersion: number;
  readonly batches: boolean;
  /** True if the model is decoupled: it sends any number of responses, and the steps that read them run once for each response. */
  readonly isDecoupled: boolean;
  /**
   * Number of decoupled steps before this one. At level 0 a step runs once for each request; otherwise once for each response of the
   * nearest decoupled step before it.
   */
  readonly level: number;
  readonly inputs: readonly { readonly name: string; readonly dims: readonly number[]; readonly tensor: TensorIndex }[];
  /** Tensors by the step's output names. */
  readonly outputs: ReadonlyMap<string, TensorIndex>;
}

/** An ensemble as a data flow graph. Every tensor comes from the request or from exactly one step. */
export interface EnsembleGraph {
  readonly name: string;
  readonly batches: boolean;
  readonly tensorNames: readonly string[];
  readonly inputs: ReadonlyMap<string, TensorIndex>;
  readonly outputs: readonly {
    readonly name: string;
    readonly dims: readonly number[];
    readonly tensor: TensorIndex;
  }[];
  readonly steps: readonly GraphStep[];
}

/** The part of a graph that produces the requested outputs. Arrays are indexed by step or by tensor. */
export interface EnsemblePlan {
  readonly outputs: EnsembleGraph["outputs"];
  /** Level of the steps that produce the outputs; it is the same for all outputs. */
  readonly outputLevel: number;
  /** By level: the steps that can start when the request (level 0) or a response of a decoupled step arrives. */
  readonly firstSteps: readonly (readonly number[])[];
  /** Number of steps of the same level that must end before this one can start. */
  readonly waitsFor: readonly number[];
  /** Steps of the same level that wait for this one. */
  readonly dependents: readonly (readonly number[])[];
  readonly requestedOutputs: readonly (readonly string[])[];
  /** Number of step inputs and ensemble outputs that read a tensor; 0 for an unused one. */
  readonly useCounts: readonly number[];
  /** True if no two executions of steps can overlap, neither of different steps nor of the same step. */
  readonly isLinear: boolean;
}

/** Builds the graph of a checked ensemble configuration. `stepConfigs` are the configurations of its steps' models, in order. */
export function ensembleGraph(config: ModelConfig, stepConfigs: readonly ModelConfig[]): EnsembleGraph {
  assert(config.scheduling.kind === "ensemble", `model '${config.name}' is not an ensemble`);
  const { steps } = config.scheduling;
  assert(steps.length === stepConfigs.length, `ensemble '${config.name}' has a configuration for each step`);
  const indices = new Map<string, TensorIndex>();
  const indexOf = (tensorName: string): TensorIndex => {
    const known = indices.get(tensorName);
    if (known !== undefined) return known;
    indices.set(tensorName, indices.size);
    return indices.size - 1;
  };
  const inputs = new Map(config.inputs.map(({ name }) => [name, indexOf(name)]));
  const unlevelled = steps.map((step, index): GraphStep => {
    const model = stepConfigs[index] as ModelConfig;
    return {
      index,
      modelName: step.modelName,
      modelVersion: step.modelVersion,
      batches: model.maxBatchSize > 0,
      isDecoupled: model.decoupled,
      level: 0,
      inputs: [...step.inputMap].map(([name, tensorName]) => ({
        name,
        dims: model.inputs.find((input) => input.name === name)?.dims ?? [],
        tensor: indexOf(tensorName),
      })),
      outputs: new Map([...step.outputMap].map(([name, tensorName]) => [name, indexOf(tensorName)])),
    };
  });
  const outputs = config.outputs.map(({ name, dims }) => ({ name, dims, tensor: indexOf(name) }));
  return {
    name: config.name,
    batches: config.maxBatchSize > 0,
    tensorNames: [...indices.keys()],
    inputs,
    outputs,
    steps: levelled(unlevelled),
  };
}

/** Returns the steps with their levels. A checked configuration has no cycles, and no step that reads tensors of two levels. */
function levelled(steps: readonly GraphStep[]): readonly GraphStep[] {
  const producers = producersOf(steps);
  const levels = new Map<number, number>();
  const levelOf = (index: number): number => {
    const known = levels.get(index);
    if (known !== undefined) return known;
    levels.set(index, 0);
    let level = 0;
    for (const { tensor } of steps[index]?.inputs ?? []) level = Math.max(level, levelAfter(producers.get(tensor)));
    levels.set(index, level);
    return level;
  };
  const levelAfter = (producer: number | undefined): number =>
    producer === undefined ? 0 : levelOf(producer) + (steps[producer]?.isDecoupled ? 1 : 0);
  return steps.map((step) => ({ ...step, level: levelOf(step.index) }));
}

/** Returns the part of the graph that produces the requested outputs; null selects all outputs. */
export function selectEnsembleSteps(graph: EnsembleGraph, requestedOutputs: readonly string[] | null): EnsemblePlan {
  const outputs =
    requestedOutputs === null
      ? graph.outputs
      : graph.outputs.filter((output) => requestedOutputs.includes(output.name));
  const producers = producersOf(graph.steps);
  const needed = neededSteps(graph, producers, outputs);
  const useCounts = Array.from(graph.tensorNames, () => 0);
  const use = (tensor: TensorIndex) => {
    useCounts[tensor] = (useCounts[tensor] ?? 0) + 1;
  };
  for (const output of outputs) use(output.tensor);
  for (const index of needed) for (const input of graph.steps[index]?.inputs ?? []) use(input.tensor);
  const dependents: number[][] = graph.steps.map(() => []);
  const waitsFor = graph.steps.map((step, index) => {
    if (!needed.has(index)) return 0;
    const before = new Set<number>();
    for (const input of step.inputs) {
      const producer = producers.get(input.tensor);
      // A step does not wait for a decoupled producer: a frame of the step's level starts with a response of that producer.
      if (producer !== undefined && !graph.steps[producer]?.isDecoupled) before.add(producer);
    }
    for (const producer of before) dependents[producer]?.push(index);
    return before.size;
  });
  const steps = [...needed].sort((a, b) => a - b);
  const outputLevel = outputLevelOf(graph, producers, outputs);
  const firstSteps = Array.from({ length: outputLevel + 1 }, (_, level) =>
    steps.filter((index) => graph.steps[index]?.level === level && waitsFor[index] === 0),
  );
  return {
    outputs,
    outputLevel,
    firstSteps,
    waitsFor,
    dependents,
    requestedOutputs: graph.steps.map((step) =>
      [...step.outputs].filter(([, tensor]) => (useCounts[tensor] ?? 0) > 0).map(([name]) => name),
    ),
    useCounts,
    isLinear:
      steps.filter((index) => waitsFor[index] === 0).length <= 1 &&
      steps.every((index) => !graph.steps[index]?.isDecoupled && (dependents[index]?.length ?? 0) <= 1),
  };
}

function outputLevelOf(
  graph: EnsembleGraph,
  producers: ReadonlyMap<TensorIndex, number>,
  outputs: EnsembleGraph["outputs"],
): number {
  let outputLevel = 0;
  for (const { tensor } of outputs) {
    const step = graph.steps[producers.get(tensor) ?? -1];
    if (step !== undefined) outputLevel = Math.max(outputLevel, step.level + (step.isDecoupled ? 1 : 0));
  }
  return outputLevel;
}

function producersOf(steps: readonly GraphStep[]): ReadonlyMap<TensorIndex, number> {
  const producers = new Map<TensorIndex, number>();
  for (const { index, outputs } of steps) for (const tensor of outputs.values()) producers.set(tensor, index);
  return producers;
}

function neededSteps(
  graph: EnsembleGraph,
  producers: ReadonlyMap<TensorIndex, number>,
  outputs: EnsembleGraph["outputs"],
): ReadonlySet<number> {
  const needed = new Set<number>();
  const open = outputs.map((output) => output.tensor);
  for (let tensor = open.pop(); tensor !== undefined; tensor = open.pop()) {
    const producer = producers.get(tensor);
    if (producer === undefined || needed.has(producer)) continue;
    needed.add(producer);
    for (const input of graph.steps[producer]?.inputs ?? []) open.push(input.tensor);
  }
  return needed;
}

/**
 * Converts a tensor's shape if only one of its producer and its reader batches; otherwise returns it unchanged. Shapes include the batch
 * axis. For a reader that batches, a shape that equals the reader's dims gets a leading 1; in any other shape the first axis is the batch.
 * A reader that does not batch gets the whole shape if that fits the reader's dims; otherwise a batch axis of 1 is removed.
 */
export function adaptShape(
  shape: readonly number[],
  makerBatches: boolean,
  dims: readonly number[],
  readerBatches: boolean,
): readonly number[] {
  if (makerBatches === readerBatches) return shape;
  const fits = shape.length === dims.length && dims.every((dim, axis) => dim === -1 || dim === shape[axis]);
  if (readerBatches) return fits ? [1, ...shape] : shape;
  return !fits && shape[0] === 1 ? shape.slice(1) : shape;
}
