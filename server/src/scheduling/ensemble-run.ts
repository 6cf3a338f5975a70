import { InferenceError, type Clock } from "../base/index.ts";
import {
  noParameters,
  releaseResponse,
  type InferenceRequest,
  type InferenceResponse,
  type ParameterValue,
  type RequestRecord,
} from "../inference/index.ts";
import type { Tensor } from "../tensor/index.ts";
import { adaptShape, type EnsembleGraph, type EnsemblePlan, type GraphStep } from "./ensemble-graph.ts";
import type { RunStep, StepResult } from "./options.ts";
import { requestPrefix } from "./refusals.ts";
import type { GateWaiter, StepGates } from "./step-gate.ts";

/** What all requests of an ensemble share. */
export interface EnsembleShared {
  readonly graph: EnsembleGraph;
  readonly gates: StepGates;
  readonly runStep: RunStep;
  readonly modelVersion: string;
  readonly clock: Clock;
  /** The run holds nothing any more: no tensor, no place, no step. */
  readonly ended: (run: EnsembleRun) => void;
}

interface StoredTensor {
  readonly tensor: Tensor;
  readonly makerBatches: boolean;
  usesLeft: number;
}

/**
 * One request on its way through an ensemble. It settles once: with the response, with the first failure, or when it is given up;
 * steps that still run then are told by their signal, and what they bring is released. The request's inputs go back at once: what
 * steps read of them the run holds itself, so that the last step to read a tensor is its only holder and may be given it to write to.
 */
export class EnsembleRun implements GateWaiter {
  readonly promise: Promise<InferenceResponse>;
  readonly #shared: EnsembleShared;
  readonly #plan: EnsemblePlan;
  readonly #request: InferenceRequest;
  readonly #record: RequestRecord;
  readonly #tensors: (StoredTensor | null)[];
  readonly #waitsFor: number[];
  /** Where steps may run side by side, the failure of one ends the others. */
  readonly #controller: AbortController | null;
  #resolve!: (response: InferenceResponse) => void;
  #reject!: (error: InferenceError) => void;
  #settled = false;
  #runningCount = 0;
  #gatedCount = 0;

  constructor(
    shared: EnsembleShared,
    plan: EnsemblePlan,
    request: InferenceRequest,
    record: RequestRecord,
    releaseInputs: () => void,
  ) {
    this.#shared = shared;
    this.#plan = plan;
    this.#request = request;
    this.#record = record;
    this.#tensors = shared.graph.tensorNames.map(() => null);
    this.#waitsFor = [...plan.waitsFor];
    for (const tensor of request.inputs) {
      const index = shared.graph.inputs.get(tensor.name);
      if (index === undefined) continue;
      tensor.block?.retain();
      this.#store(index, tensor, shared.graph.batches);
    }
    releaseInputs();
    this.#controller = plan.isLinear ? null : new AbortController();
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  start(): void {
    this.#request.signal?.addEventListener("abort", this);
    for (const step of this.#plan.steps) if (this.#plan.waitsFor[step] === 0) this.#reach(step);
    this.#advance();
  }

  /** The abort event. */
  handleEvent(): void {
    this.abandon(new InferenceError("CANCELLED", ""));
  }

  /** Settles the request with the error; what its steps bring is released when it comes. */
  abandon(error: InferenceError): void {
    if (this.#settled) return;
    this.#fail(error);
    this.#advance();
  }

  admitted(step: number): void {
    this.#gatedCount--;
    void this.#run(step);
  }

  /** All that the step waits for has ended. */
  #reach(step: number): void {
    if (this.#settled) return;
    if (this.#shared.gates.enter(step, this)) void this.#run(step);
    else this.#gatedCount++;
  }

  async #run(index: number): Promise<void> {
    this.#runningCount++;
    const step = this.#shared.graph.steps[index] as GraphStep;
    try {
      const request = this.#stepRequest(index, step);
      const result = await this.#shared.runStep(step.modelName, step.modelVersion, request, request.signal);
      this.#stepEnded(index, step, result);
    } catch (error) {
      const { code, message, reason } = InferenceError.from(error);
      const told = `in ensemble '${this.#shared.graph.name}', ${message}`;
      this.#fail(new InferenceError(code, told, { cause: error, reason }));
    }
    this.#runningCount--;
    this.#shared.gates.leave(index);
    this.#advance();
  }

  #stepRequest(index: number, step: GraphStep): InferenceRequest {
    const { id, namespace, parameters, sequence, priority, signal } = this.#request;
    const { queueTimeoutUs, deadlineNs, caller, trace } = this.#request;
    const inputs: Tensor[] = [];
    for (const { name, dims, tensor: from } of step.inputs) {
      const stored = this.#tensors[from];
      if (stored === null || stored === undefined) continue;
      const { datatype, shape, data, block } = stored.tensor;
      block?.retain();
      inputs.push({ name, datatype, shape: adaptShape(shape, stored.makerBatches, dims, step.batches), data, block });
      this.#used(from, stored);
    }
    return {
      id,
      namespace,
      modelName: step.modelName,
      modelVersion: step.modelVersion === -1 ? "" : String(step.modelVersion),
      inputs,
      requestedOutputs: this.#plan.requestedOutputs[index] as readonly string[],
      parameters,
      sequence,
      priority,
      queueTimeoutUs,
      receivedNs: this.#shared.clock.monotonicNs(),
      deadlineNs,
      caller,
      trace,
      signal: this.#controller === null ? signal : this.#controller.signal,
    };
  }

  #stepEnded(index: number, step: GraphStep, { response, record }: StepResult): void {
    if (this.#settled) return releaseResponse(response);
    const times = this.#record;
    times.startedNs += Math.max(0, record.startedNs - record.queuedNs);
    times.computeInputNs += record.computeInputNs;
    times.computeInferNs += record.computeInferNs;
    times.computeOutputNs += record.computeOutputNs;
    for (const tensor of response.outputs) {
      const to = step.outputs.get(tensor.name);
      if (to === undefined) tensor.block?.release();
      else this.#store(to, tensor, step.batches);
    }
    for (const dependent of this.#plan.dependents[index] ?? []) {
      const waitsFor = (this.#waitsFor[dependent] as number) - 1;
      this.#waitsFor[dependent] = waitsFor;
      if (waitsFor === 0) this.#reach(dependent);
    }
  }

  /** Takes an owned tensor's reference over: kept while somebody is going to read it. */
  #store(index: number, tensor: Tensor, makerBatches: boolean): void {
    const usesLeft = this.#plan.useCounts[index] as number;
    if (usesLeft > 0 && this.#tensors[index] === null) {
      this.#tensors[index] = { tensor, makerBatches, usesLeft };
    } else tensor.block?.release();
  }

  #used(index: number, stored: StoredTensor): void {
    stored.usesLeft--;
    if (stored.usesLeft > 0) return;
    this.#tensors[index] = null;
    stored.tensor.block?.release();
  }

  #fail(error: InferenceError): void {
    if (this.#settled) return;
    this.#settle();
    if (this.#gatedCount > 0) this.#shared.gates.giveUp(this);
    this.#gatedCount = 0;
    this.#controller?.abort(error);
    this.#reject(error);
  }

  #settle(): void {
    this.#settled = true;
    this.#request.signal?.removeEventListener("abort", this);
  }

  /** Looks whether anything is left to wait for. */
  #advance(): void {
    if (this.#runningCount > 0 || this.#gatedCount > 0) return;
    if (!this.#settled) this.#finish();
    for (const stored of this.#tensors) stored?.tensor.block?.release();
    this.#tensors.fill(null);
    this.#shared.ended(this);
  }

  #finish(): void {
    const { graph } = this.#shared;
    const made = this.#plan.outputs.filter((output) => this.#tensors[output.tensor] !== null);
    // Triton's answer when its last step brought nothing: no outputs and no parameters.
    if (made.length === 0) return this.#succeed([], noParameters);
    if (made.length < this.#plan.outputs.length) {
      const text = "unexpected deadlock, at least one output is not set while no more ensemble steps can be made";
      const prefix = `in ensemble '${graph.name}', ${requestPrefix(this.#request)}`;
      return this.#fail(new InferenceError("INVALID_ARG", prefix + text));
    }
    const outputs = made.map(({ name, dims, tensor: from }): Tensor => {
      const stored = this.#tensors[from] as StoredTensor;
      const { datatype, shape, data, block } = stored.tensor;
      block?.retain();
      return { name, datatype, shape: adaptShape(shape, stored.makerBatches, dims, graph.batches), data, block };
    });
    this.#succeed(outputs, this.#parameters());
  }

  #succeed(outputs: readonly Tensor[], parameters: ReadonlyMap<string, ParameterValue>): void {
    const { modelVersion } = this.#shared;
    const record = this.#record;
    record.executedBatchSize = record.batchSize;
    record.countsExecution = true;
    this.#settle();
    this.#resolve({ modelName: this.#request.modelName, modelVersion, outputs, parameters });
  }

  /** Triton answers an ensemble's request with its sequence flags, set or not. */
  #parameters(): ReadonlyMap<string, ParameterValue> {
    const { sequence } = this.#request;
    return new Map<string, ParameterValue>([
      ["sequence_id", sequence?.id ?? 0n],
      ["sequence_start", sequence?.start ?? false],
      ["sequence_end", sequence?.end ?? false],
    ]);
  }
}
