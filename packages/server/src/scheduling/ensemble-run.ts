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
import { requestCancelled, timedOut } from "./refusals.ts";
import type { Settlement } from "./scheduler.ts";
import { StepGates, WaitingStep } from "./step-gate.ts";

/** The state that all requests of an ensemble share. */
export interface EnsembleShared {
  readonly graph: EnsembleGraph;
  readonly gates: StepGates;
  readonly models: StepModels;
  readonly modelVersion: string;
  readonly clock: Clock;
  /** Called when the run has released all tensors, slots and steps. */
  readonly ended: (run: EnsembleRun) => void;
}

/** One message of a decoupled step. */
interface StepAnswer {
  readonly outcome: Outcome | null;
  readonly isFinal: boolean;
  readonly taken: () => void;
}

/**
 * Responses of one request that were sent but not consumed; when there are this many, later responses and the steps that produce them
 * wait.
 */
const untakenMax = 16;
/** Concurrent requests to one decoupled step for one ensemble request; each has responses ahead of its reader. */
const streamsMax = 16;

/**
 * One request on its way through an ensemble. Its one response, the first failure, or cancellation settles it. With decoupled steps, it
 * sends responses to the request's sink as they are produced, and settles with the last one. Steps that still run then are aborted by
 * their signal, and their results are released. The request's inputs are released at once: the run has its own references to those that
 * steps read, so that the last step to read a tensor is its only holder and may write to it.
 */
export class EnsembleRun implements FrameRun {
  readonly graph: EnsembleGraph;
  readonly plan: EnsemblePlan;
  readonly promise: Promise<Settlement>;
  readonly #shared: EnsembleShared;
  readonly #request: InferenceRequest;
  readonly #record: RequestRecord;
  readonly #root: EnsembleFrame;
  /** Frames of unfinished responses; null without decoupled steps. */
  readonly #frames: Set<EnsembleFrame> | null;
  /** Number of running requests of each decoupled step; null when no decoupled step reads from another. */
  readonly #streams: StepGates | null;
  /** Aborts the other steps when one fails; null when steps never run concurrently. */
  readonly #controller: AbortController | null;
  /** Frames whose responses are complete and wait until earlier ones are consumed. */
  #made: EnsembleFrame[] | null = null;
  #isGiving = false;
  #isFinalGiven = false;
  #untakenCount = 0;
  #resolve!: (settlement: Settlement) => void;
  #reject!: (error: InferenceError) => void;
  #state: "running" | "answered" | "settled" = "running";
  /** Number of requests to steps that have not ended. */
  #stepCount = 0;
  /** Steps that wait for a slot. */
  #waiting: Set<WaitingStep> | null = null;
  /** Fires at the request's deadline; null when no step has waited. */
  #expiry: Disposable | null = null;

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

  /** Handles the abort event. Ignored after the last response. */
  handleEvent(): void {
    if (this.#state === "running") this.abandon(requestCancelled(this.#request));
  }

  /** Settles the request with the error; results of running steps are released when they arrive. */
  abandon(error: InferenceError): void {
    if (this.#state === "settled") return;
    this.#fail(error);
    this.#endIfIdle();
  }

  #begin(frame: EnsembleFrame): void {
    for (const step of frame.firstSteps) this.#reach(frame, step);
    this.#advance(frame);
  }

  /** Called when all steps that this one waits for have ended. */
  #reach(frame: EnsembleFrame, index: number): void {
    if (this.#state !== "running") return;
    frame.openCount++;
    const { gates } = this.#shared;
    const streams = this.#streamsOf(this.graph.steps[index] as GraphStep);
    // Allocates nothing for a step that finds a free slot, as nearly all do.
    if (streams === null && gates.enter(index)) return this.#run(frame, index);
    const waiting = new WaitingStep(index, streams === null ? [gates] : [streams, gates], () => {
      this.#waiting?.delete(waiting);
      this.#run(frame, index);
    });
    (this.#waiting ??= new Set()).add(waiting);
    waiting.begin();
    if (this.#waiting?.has(waiting)) this.#armExpiry();
  }

  /** Fails the request when its deadline passes while a step waits for a slot. */
  #armExpiry(): void {
    const { deadlineNs } = this.#request;
    if (this.#expiry !== null || deadlineNs === Number.POSITIVE_INFINITY) return;
    const { clock } = this.#shared;
    const delayMs = Math.max(1, Math.ceil((deadlineNs - clock.monotonicNs()) / 1e6));
    this.#expiry = clock.timer(delayMs, () => {
      this.#expiry = null;
      if (this.#waiting === null || this.#waiting.size === 0) return;
      this.#stepFailed(timedOut());
      this.#endIfIdle();
    });
  }

  #run(frame: EnsembleFrame, index: number): void {
    const step = this.graph.steps[index] as GraphStep;
    this.#stepCount++;
    if (step.isDecoupled) void this.#stream(frame, step);
    else void this.#infer(frame, step);
  }

  /** One async function for the whole step: a chain of two would cost every step a microtask. */
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

  /** Called when the request to the step has been released, and has had its last response. */
  #stepOver(step: GraphStep): void {
    this.#stepCount--;
    this.#shared.gates.leave(step.index);
    this.#endIfIdle();
  }

  /** Returns the limit of a step that runs several times with many responses each. */
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
    // Counted first, so that a result of this response can be the ensemble's last.
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

  /** Closes the frame if it has no more work. */
  #advance(frame: EnsembleFrame): void {
    if (frame.openCount > 0 || this.#state !== "running") return;
    if (frame.level < this.plan.outputLevel) return this.#close(frame);
    if (this.#request.answers === undefined) return this.#finish(frame);
    (this.#made ??= []).push(frame);
    this.#giveMade();
  }

  /** Closes the frame and releases its remaining tensors. */
  #close(frame: EnsembleFrame): void {
    const { parent } = frame;
    frame.releaseTensors();
    this.#frames?.delete(frame);
    frame.releaseCredit();
    if (parent === null) return this.#answered();
    parent.openCount--;
    this.#advance(parent);
  }

  // Responses to a sink.

  /** Sends complete responses while earlier ones are consumed. */
  #giveMade(): void {
    // A sink may consume a response at once, and a step then send more.
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

  /**
   * Ends the responses of a request with a sink. The request settles when its steps have been released, because their times are part of
   * its record.
   */
  #answered(): void {
    this.#state = "answered";
    if (!this.#isFinalGiven) this.#request.answers?.respond(null, true, () => {});
    this.#endIfIdle();
  }

  // A single response.

  #finish(frame: EnsembleFrame): void {
    const response = this.#response(frame);
    frame.releaseTensors();
    this.#succeed(response);
  }

  /** Returns the response. Missing outputs are omitted, and a response without outputs has no parameters, as in Triton. */
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
    // A step's rejection is a failure of the ensemble's execution: the ensemble itself was accepted and has run.
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
    this.#expiry?.[Symbol.dispose]();
    this.#request.signal?.removeEventListener("abort", this);
  }

  /** Settles the request if no step is left to wait for. */
  #endIfIdle(): void {
    if (this.#stepCount > 0 || this.#state === "running") return;
    if (this.#state === "answered") this.#succeed("sent");
    this.#shared.ended(this);
  }

  /** Returns the sequence flags, set or not, which Triton sends with an ensemble's response. */
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
 * Returns whether this frame's response is the ensemble's last one: no other frame is open, and every response in its chain had the final
 * flag. If a step sends its final flag in an empty response, the ensemble also ends with an empty final response.
 */
function isLast(frame: EnsembleFrame): boolean {
  for (let at: EnsembleFrame = frame; at.parent !== null; at = at.parent)
    if (!at.isFinal || at.parent.openCount > 1) return false;
  return true;
}

/** Initial state of the first frame, which holds the request's inputs and results from no response. */
const firstAnswer = { taken: null, isFinal: true };
