import type { InferenceResponse } from "../inference/index.ts";
import type { Tensor } from "../tensor/index.ts";
import { adaptShape, type EnsembleGraph, type EnsemblePlan, type GraphStep } from "./ensemble-graph.ts";

interface StoredTensor {
  readonly tensor: Tensor;
  readonly makerBatches: boolean;
  usesLeft: number;
}

/** The run that a frame belongs to. */
export interface FrameRun {
  readonly graph: EnsembleGraph;
  readonly plan: EnsemblePlan;
}

/**
 * The state of an ensemble run, for its request or for one response of a decoupled step: the tensors, and which steps have not ended. The
 * request's frame is the root. The frame of a response is a child of the frame in which the decoupled step ran. A frame reads only its own
 * tensors, because no step reads tensors of two levels.
 */
export class EnsembleFrame {
  readonly level: number;
  readonly parent: EnsembleFrame | null;
  /** True if the response that created this frame had the final flag. */
  readonly isFinal: boolean;
  /** Number of running and waiting steps, plus unfinished child frames. */
  openCount = 0;
  readonly #run: FrameRun;
  readonly #tensors: (StoredTensor | null)[];
  readonly #waitsFor: number[];
  /** Acknowledges the response that created this frame, so that the step may send another one. */
  #taken: (() => void) | null;
  /**
   * Number of conditions that withhold the acknowledgement: the frame has not ended, its response is not sent, or a child frame is not
   * acknowledged.
   */
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

  /** Takes ownership of a tensor, and keeps it until the last step or output that needs it has read it. */
  store(index: number, tensor: Tensor, makerBatches: boolean): void {
    const usesLeft = this.#run.plan.useCounts[index] as number;
    if (usesLeft > 0 && this.#tensors[index] === null) {
      this.#tensors[index] = { tensor, makerBatches, usesLeft };
    } else tensor.block?.release();
  }

  /** Takes ownership of the outputs of a step. */
  storeOutputs(step: GraphStep, response: InferenceResponse): void {
    for (const tensor of response.outputs) {
      const to = step.outputs.get(tensor.name);
      if (to === undefined) tensor.block?.release();
      else this.store(to, tensor, step.batches);
    }
  }

  /** Records that one of the steps before `step` has ended; returns whether `step` can start now. */
  isReached(step: number): boolean {
    const waitsFor = (this.#waitsFor[step] as number) - 1;
    this.#waitsFor[step] = waitsFor;
    return waitsFor === 0;
  }

  /** Returns the inputs of a step, each with a new reference. */
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

  /** Returns the requested outputs that were produced, each with a new reference. */
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

  /** Removes one condition that withholds the acknowledgement. After the last one, acknowledges the response. */
  releaseCredit(): void {
    if (--this.#creditHolders > 0) return;
    this.#giveCredit();
    this.parent?.releaseCredit();
  }

  /** Ends the frame early, because its results are not needed any more. */
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
