import { assert } from "@galatea/base";
import type { ModelConfig } from "../modelconfig/index.ts";

/** A tensor of an ensemble, by its number in the graph. */
type TensorIndex = number;

export interface GraphStep {
  /** Its place in the configuration. */
  readonly index: number;
  readonly modelName: string;
  /** -1 for the latest. */
  readonly modelVersion: number;
  readonly batches: boolean;
  /** Gives any number of answers, and what reads them runs once for each. */
  readonly isDecoupled: boolean;
  /** How many decoupled steps lie before it: it runs once for each answer of the last of them, at level 0 once for the request. */
  readonly level: number;
  readonly inputs: readonly { readonly name: string; readonly dims: readonly number[]; readonly tensor: TensorIndex }[];
  /** Step output name to tensor. */
  readonly outputs: ReadonlyMap<string, TensorIndex>;
}

/** An ensemble as data flow. Every tensor comes from the request or from one step. */
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

/** What one choice of outputs needs of a graph. Arrays are indexed by step or by tensor. */
export interface EnsemblePlan {
  readonly outputs: EnsembleGraph["outputs"];
  /** Of what makes the outputs: they are all of one level. */
  readonly outputLevel: number;
  /** By level: the steps that can start as soon as the request, or an answer of the level's decoupled step, is there. */
  readonly firstSteps: readonly (readonly number[])[];
  /** How many steps of its own level must end before this one can start. */
  readonly waitsFor: readonly number[];
  /** Steps of the same level that wait for this one. */
  readonly dependents: readonly (readonly number[])[];
  readonly requestedOutputs: readonly (readonly string[])[];
  /** Step inputs and ensemble outputs that read a tensor; 0 for one that nobody wants. */
  readonly useCounts: readonly number[];
  /** Whether no two steps, and no step twice, are ever under way at the same time. */
  readonly isLinear: boolean;
}

/** `config` is an ensemble's, checked; `stepConfigs` are its steps' models' in order. */
export function ensembleGraph(config: ModelConfig, stepConfigs: readonly ModelConfig[]): EnsembleGraph {
  assert(config.scheduling.kind === "ensemble", `model '${config.name}' is no ensemble`);
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

/** The steps with their levels; a configuration that was checked has no circles, and no step that reads of two levels. */
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

/** Prunes what serves only outputs that are not wanted; null asks for all. */
export function planEnsemble(graph: EnsembleGraph, requestedOutputs: readonly string[] | null): EnsemblePlan {
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
      // Its answer is there when this step's level begins.
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
 * A tensor's shape for a reader that batches where its maker did not, or the reverse; otherwise the shape itself. Wire shapes
 * include the batch axis. A reader that batches gets a leading 1 when the shape is exactly its dims, else the first axis is taken
 * for the batch. One that does not gets the whole shape when that fits its dims, else a batch of 1 loses its axis.
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
