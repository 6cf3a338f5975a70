import type { InferenceResponse } from "../inference/index.ts";
import type { Tensor } from "../tensor/index.ts";
import { adaptShape, type EnsembleGraph, type EnsemblePlan, type GraphStep } from "./ensemble-graph.ts";

interface StoredTensor {
  readonly tensor: Tensor;
  readonly makerBatches: boolean;
  usesLeft: number;
}

/** The run that a frame is part of, as the frame sees it. */
export interface FrameRun {
  readonly graph: EnsembleGraph;
  readonly plan: EnsemblePlan;
}

/**
 * What an ensemble knows of its request, or of one answer of a decoupled step: the tensors, and which steps have still to end before others
 * can start. The request's frame is the root; an answer's frame lies below the one that the step ran in. A frame reads tensors of its own
 * alone, because no step reads of two levels.
 */
export class EnsembleFrame {
  readonly level: number;
  readonly parent: EnsembleFrame | null;
  /** Whether the response that opened the frame carried the final flag. */
  readonly isFinal: boolean;
  /** Steps that run or wait to run for it, and frames below it that are not over. */
  openCount = 0;
  readonly #run: FrameRun;
  readonly #tensors: (StoredTensor | null)[];
  readonly #waitsFor: number[];
  /** Gives the step that made the answer its credit back. */
  #taken: (() => void) | null;
  /** This frame until it is over, its own answer until it is taken, and frames below it that hold credit. */
  #creditHolders = 1;

  constructor(
    run: FrameRun,
    parent: EnsembleFrame | null,
    { taken, isFinal }: { readonly taken: (() => void) | null; readonly isFinal: boolean },
  ) {
    this.level = parent === null ? 0 : parent.level + 1;
    this.parent = parent;
    this.isFinal = isFinal;
    this.#run = run;
    this.#tensors = run.graph.tensorNames.map(() => null);
    this.#waitsFor = [...run.plan.waitsFor];
    this.#taken = taken;
    if (parent === null) return;
    parent.openCount++;
    parent.holdCredit();
  }

  get firstSteps(): readonly number[] {
    return this.#run.plan.firstSteps[this.level] ?? noSteps;
  }

  /** Takes an owned tensor's reference over: kept while somebody is going to read it. */
  store(index: number, tensor: Tensor, makerBatches: boolean): void {
    const usesLeft = this.#run.plan.useCounts[index] as number;
    if (usesLeft > 0 && this.#tensors[index] === null) {
      this.#tensors[index] = { tensor, makerBatches, usesLeft };
    } else tensor.block?.release();
  }

  /** Takes the outputs of a step over. */
  storeOutputs(step: GraphStep, response: InferenceResponse): void {
    for (const tensor of response.outputs) {
      const to = step.outputs.get(tensor.name);
      if (to === undefined) tensor.block?.release();
      else this.store(to, tensor, step.batches);
    }
  }

  /** One of the steps that this one waits for has ended: whether it was the last. */
  isReached(step: number): boolean {
    const waitsFor = (this.#waitsFor[step] as number) - 1;
    this.#waitsFor[step] = waitsFor;
    return waitsFor === 0;
  }

  /** The inputs of a step, with references of their own. */
  inputsOf(step: GraphStep): readonly Tensor[] {
    const inputs: Tensor[] = [];
    for (const { name, dims, tensor: from } of step.inputs) {
      const stored = this.#tensors[from];
      if (stored === null || stored === undefined) continue;
      const { datatype, shape, data, block } = stored.tensor;
      block?.retain();
      inputs.push({ name, datatype, shape: adaptShape(shape, stored.makerBatches, dims, step.batches), data, block });
      this.#used(from, stored);
    }
    return inputs;
  }

  #used(index: number, stored: StoredTensor): void {
    stored.usesLeft--;
    if (stored.usesLeft > 0) return;
    this.#tensors[index] = null;
    stored.tensor.block?.release();
  }

  /** Those of the wanted outputs that were made, with references of their own. */
  outputs(): readonly Tensor[] {
    const { graph, plan } = this.#run;
    const outputs: Tensor[] = [];
    for (const { name, dims, tensor: from } of plan.outputs) {
      const stored = this.#tensors[from];
      if (stored === null || stored === undefined) continue;
      const { datatype, shape, data, block } = stored.tensor;
      block?.retain();
      outputs.push({ name, datatype, shape: adaptShape(shape, stored.makerBatches, dims, graph.batches), data, block });
    }
    return outputs;
  }

  releaseTensors(): void {
    for (const stored of this.#tensors) stored?.tensor.block?.release();
    this.#tensors.fill(null);
  }

  holdCredit(): void {
    this.#creditHolders++;
  }

  /** When nothing that came of the answer is held any more, the step that made it may make another. */
  releaseCredit(): void {
    if (--this.#creditHolders > 0) return;
    this.#giveCredit();
    this.parent?.releaseCredit();
  }

  /** Nobody waits for what comes of it. */
  discard(): void {
    this.releaseTensors();
    this.#giveCredit();
  }

  #giveCredit(): void {
    const taken = this.#taken;
    this.#taken = null;
    taken?.();
  }
}

const noSteps: readonly number[] = [];
