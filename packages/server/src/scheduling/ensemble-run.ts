import { InferenceError, type Clock } from "@galatea/base";
import {
  newRecord,
  noParameters,
  releaseResponse,
  type AnswerSink,
  type InferenceRequest,
  type InferenceResponse,
  type Outcome,
  type ParameterValue,
  type RequestRecord,
} from "../inference/index.ts";
import { EnsembleFrame, type FrameRun } from "./ensemble-frame.ts";
import type { EnsembleGraph, EnsemblePlan, GraphStep } from "./ensemble-graph.ts";
import type { StepModels } from "./options.ts";
import type { Settlement } from "./scheduler.ts";
import { StepGates, WaitingStep } from "./step-gate.ts";

/** What all requests of an ensemble share. */
export interface EnsembleShared {
  readonly graph: EnsembleGraph;
  readonly gates: StepGates;
  readonly models: StepModels;
  readonly modelVersion: string;
  readonly clock: Clock;
  /** The run holds nothing any more: no tensor, no place, no step. */
  readonly ended: (run: EnsembleRun) => void;
}

/** What a decoupled step has said. */
interface StepAnswer {
  readonly outcome: Outcome | null;
  readonly isFinal: boolean;
  readonly taken: () => void;
}

/** Answers of one request that were given and not taken; further ones wait, and with them the steps that make them. */
const untakenMax = 16;
/** Requests of one decoupled step at a time that one ensemble request makes; each has answers ahead of its reader. */
const streamsMax = 16;

/**
 * One request on its way through an ensemble. Its one response, the first failure, or being given up settles it; one with decoupled steps
 * gives its answers to the request's sink as they are made, and settles with the last. Steps that still run then are told by their signal,
 * and what they bring is released. The request's inputs go back at once: what steps read of them the run holds itself, so that the last
 * step to read a tensor is its only holder and may be given it to write to.
 */
export class EnsembleRun implements FrameRun {
  readonly graph: EnsembleGraph;
  readonly plan: EnsemblePlan;
  readonly promise: Promise<Settlement>;
  readonly #shared: EnsembleShared;
  readonly #request: InferenceRequest;
  readonly #record: RequestRecord;
  readonly #root: EnsembleFrame;
  /** Frames of answers that are not over; null where no step is decoupled. */
  readonly #frames: Set<EnsembleFrame> | null;
  /** How many requests of each decoupled step run; null where none is read by another. */
  readonly #streams: StepGates | null;
  /** Where steps may run side by side, the failure of one ends the others. */
  readonly #controller: AbortController | null;
  /** Frames whose answers are made, and wait until others are taken. */
  #made: EnsembleFrame[] | null = null;
  #isGiving = false;
  #isFinalGiven = false;
  #untakenCount = 0;
  #resolve!: (settlement: Settlement) => void;
  #reject!: (error: InferenceError) => void;
  #state: "running" | "answered" | "settled" = "running";
  /** Requests to steps that have not ended. */
  #stepCount = 0;
  /** Those that wait for a place. */
  #waiting: Set<WaitingStep> | null = null;

  constructor(
    shared: EnsembleShared,
    plan: EnsemblePlan,
    request: InferenceRequest,
    record: RequestRecord,
    releaseInputs: () => void,
  ) {
    this.graph = shared.graph;
    this.plan = plan;
    this.#shared = shared;
    this.#request = request;
    this.#record = record;
    this.#root = new EnsembleFrame(this, null, firstAnswer);
    for (const tensor of request.inputs) {
      const index = shared.graph.inputs.get(tensor.name);
      if (index === undefined) continue;
      tensor.block?.retain();
      this.#root.store(index, tensor, shared.graph.batches);
    }
    releaseInputs();
    this.#frames = plan.outputLevel === 0 ? null : new Set();
    this.#streams = plan.outputLevel < 2 ? null : new StepGates(shared.graph.steps.length, streamsMax);
    this.#controller = plan.isLinear ? null : new AbortController();
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  start(): void {
    this.#request.signal?.addEventListener("abort", this);
    this.#begin(this.#root);
    this.#endIfIdle();
  }

  /** The abort event. One who has had the last answer takes nothing back. */
  handleEvent(): void {
    if (this.#state === "running") this.abandon(new InferenceError("CANCELLED", ""));
  }

  /** Settles the request with the error; what its steps bring is released when it comes. */
  abandon(error: InferenceError): void {
    if (this.#state === "settled") return;
    this.#fail(error);
    this.#endIfIdle();
  }

  #begin(frame: EnsembleFrame): void {
    for (const step of frame.firstSteps) this.#reach(frame, step);
    this.#advance(frame);
  }

  /** All that the step waits for has ended. */
  #reach(frame: EnsembleFrame, index: number): void {
    if (this.#state !== "running") return;
    frame.openCount++;
    const { gates } = this.#shared;
    const streams = this.#streamsOf(this.graph.steps[index] as GraphStep);
    // Nothing is made for a step that finds its place free, as nearly all do.
    if (streams === null && gates.enter(index)) return this.#run(frame, index);
    const waiting = new WaitingStep(index, streams === null ? [gates] : [streams, gates], () => {
      this.#waiting?.delete(waiting);
      this.#run(frame, index);
    });
    (this.#waiting ??= new Set()).add(waiting);
    waiting.begin();
  }

  #run(frame: EnsembleFrame, index: number): void {
    const step = this.graph.steps[index] as GraphStep;
    this.#stepCount++;
    if (step.isDecoupled) void this.#stream(frame, step);
    else void this.#infer(frame, step);
  }

  /** One function for all of it: each that waited for another would cost every step a turn. */
  async #infer(frame: EnsembleFrame, step: GraphStep): Promise<void> {
    try {
      const request = this.#stepRequest(frame, step);
      const record = newRecord(request.receivedNs);
      const response = await this.#shared.models.infer(step.index, request, record);
      if (this.#state === "running") {
        this.#addTimes(record);
        frame.storeOutputs(step, response);
        for (const next of this.plan.dependents[step.index] ?? []) if (frame.isReached(next)) this.#reach(frame, next);
        frame.openCount--;
        this.#advance(frame);
      } else releaseResponse(response);
    } catch (error) {
      this.#stepFailed(InferenceError.from(error));
    }
    this.#stepOver(step);
  }

  async #stream(frame: EnsembleFrame, step: GraphStep): Promise<void> {
    const answers: AnswerSink = {
      respond: (outcome, isFinal, taken) => this.#onAnswer(frame, step, { outcome, isFinal, taken }),
    };
    const request = Object.assign(this.#stepRequest(frame, step), { answers });
    const record = newRecord(request.receivedNs);
    await this.#shared.models.stream(step.index, request, record);
    this.#addTimes(record);
    this.#streamsOf(step)?.leave(step.index);
    this.#stepOver(step);
  }

  /** The request to the step has been released, and has had its last answer. */
  #stepOver(step: GraphStep): void {
    this.#stepCount--;
    this.#shared.gates.leave(step.index);
    this.#endIfIdle();
  }

  /** What bounds a step that runs several times, and gives many answers each time. */
  #streamsOf({ isDecoupled, level }: GraphStep): StepGates | null {
    return isDecoupled && level > 0 ? this.#streams : null;
  }

  #onAnswer(frame: EnsembleFrame, step: GraphStep, answer: StepAnswer): void {
    const { outcome, isFinal, taken } = answer;
    if (this.#state !== "running") {
      if (outcome !== null && !(outcome instanceof InferenceError)) releaseResponse(outcome);
      return taken();
    }
    if (outcome instanceof InferenceError) {
      this.#stepFailed(outcome);
      return taken();
    }
    // First, so that what comes of this answer can be the ensemble's last.
    if (isFinal) frame.openCount--;
    if (outcome === null) return this.#advance(frame);
    const below = new EnsembleFrame(this, frame, { taken, isFinal });
    this.#frames?.add(below);
    below.storeOutputs(step, outcome);
    this.#begin(below);
  }

  #stepRequest(frame: EnsembleFrame, step: GraphStep): InferenceRequest {
    const { id, namespace, parameters, sequence, priority, signal } = this.#request;
    const { queueTimeoutUs, deadlineNs, executionMsMax, caller } = this.#request;
    return {
      id,
      namespace,
      modelName: step.modelName,
      modelVersion: step.modelVersion === -1 ? "" : String(step.modelVersion),
      inputs: frame.inputsOf(step),
      requestedOutputs: this.plan.requestedOutputs[step.index] as readonly string[],
      parameters,
      sequence,
      priority,
      queueTimeoutUs,
      receivedNs: this.#shared.clock.monotonicNs(),
      deadlineNs,
      executionMsMax,
      caller,
      signal: this.#controller === null ? signal : this.#controller.signal,
    };
  }

  #addTimes(record: RequestRecord): void {
    const times = this.#record;
    times.startedNs += Math.max(0, record.startedNs - record.queuedNs);
    times.computeInputNs += record.computeInputNs;
    times.computeInferNs += record.computeInferNs;
    times.computeOutputNs += record.computeOutputNs;
  }

  /** Looks whether anything is left to be done for the frame. */
  #advance(frame: EnsembleFrame): void {
    if (frame.openCount > 0 || this.#state !== "running") return;
    if (frame.level < this.plan.outputLevel) return this.#close(frame);
    if (this.#request.answers === undefined) return this.#finish(frame);
    (this.#made ??= []).push(frame);
    this.#giveMade();
  }

  /** The frame is over: what it still holds nobody reads. */
  #close(frame: EnsembleFrame): void {
    const { parent } = frame;
    frame.releaseTensors();
    this.#frames?.delete(frame);
    frame.releaseCredit();
    if (parent === null) return this.#answered();
    parent.openCount--;
    this.#advance(parent);
  }

  // Answers to a sink.

  /** Gives what is made as long as what was given is taken. */
  #giveMade(): void {
    // A sink may take at once what it is given, and a step then make more.
    if (this.#isGiving) return;
    this.#isGiving = true;
    while (this.#state === "running" && this.#untakenCount < untakenMax) {
      const frame = this.#made?.shift();
      if (frame === undefined) break;
      this.#give(frame);
      if (this.#state === "running") this.#close(frame);
    }
    this.#isGiving = false;
  }

  #give(frame: EnsembleFrame): void {
    frame.holdCredit();
    this.#untakenCount++;
    this.#isFinalGiven = isLast(frame);
    this.#request.answers?.respond(this.#response(frame), this.#isFinalGiven, () => this.#onTaken(frame));
  }

  #onTaken(frame: EnsembleFrame): void {
    frame.releaseCredit();
    this.#untakenCount--;
    this.#giveMade();
  }

  /** Of a request with a sink: no answer follows. It settles when its steps have been released, whose times are its own. */
  #answered(): void {
    this.#state = "answered";
    if (!this.#isFinalGiven) this.#request.answers?.respond(null, true, () => {});
    this.#endIfIdle();
  }

  // The one response.

  #finish(frame: EnsembleFrame): void {
    const response = this.#response(frame);
    frame.releaseTensors();
    this.#succeed(response);
  }

  /** Outputs that no step made are not in it; one without any has no parameters either, as in Triton. */
  #response(frame: EnsembleFrame): InferenceResponse {
    const { modelVersion } = this.#shared;
    const { modelName } = this.#request;
    const outputs = frame.outputs();
    return { modelName, modelVersion, outputs, parameters: outputs.length === 0 ? noParameters : this.#parameters() };
  }

  #succeed(settlement: Settlement): void {
    const record = this.#record;
    record.executedBatchSize = record.batchSize;
    record.countsExecution = true;
    this.#settle();
    this.#resolve(settlement);
  }

  #stepFailed(error: InferenceError): void {
    const { code, message, reason } = error;
    const told = `in ensemble '${this.graph.name}', ${message}`;
    // A step's refusal is a failure of the ensemble's execution: the ensemble itself was accepted and has run.
    const own = reason === "request-refused" ? null : reason;
    this.#fail(new InferenceError(code, told, { cause: error, reason: own }));
  }

  #fail(error: InferenceError): void {
    if (this.#state === "settled") return;
    this.#settle();
    for (const waiting of this.#waiting ?? []) waiting.giveUp();
    this.#waiting = null;
    this.#controller?.abort(error);
    this.#root.discard();
    for (const frame of this.#frames ?? []) frame.discard();
    this.#frames?.clear();
    this.#made = null;
    this.#reject(error);
  }

  #settle(): void {
    this.#state = "settled";
    this.#request.signal?.removeEventListener("abort", this);
  }

  /** Looks whether any step is left to wait for. */
  #endIfIdle(): void {
    if (this.#stepCount > 0 || this.#state === "running") return;
    if (this.#state === "answered") this.#succeed("sent");
    this.#shared.ended(this);
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

/**
 * Returns whether the frame's response is the ensemble's last: no other frame is open, and each response that it came of carried the final flag.
 * Where a step sent its flag apart, the ensemble's flag comes apart, however long the later steps take.
 */
function isLast(frame: EnsembleFrame): boolean {
  for (let at: EnsembleFrame = frame; at.parent !== null; at = at.parent)
    if (!at.isFinal || at.parent.openCount > 1) return false;
  return true;
}

/** The origin of the request's own frame. */
const firstAnswer = { taken: null, isFinal: true };
