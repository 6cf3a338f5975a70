import { InferenceError, type Clock } from "@galatea/base";
import {
  newRecord,
  noParameters,
  releaseResponse,
  type ResponseSink,
  type InferenceRequest,
  type InferenceResponse,
  type Outcome,
  type ParameterValue,
  type RequestRecord,
} from "../inference/index.ts";
import { EnsembleFrame, type FrameRun } from "./ensemble-frame.ts";
import type { EnsembleGraph, EnsemblePlan, GraphStep } from "./ensemble-graph.ts";
import type { StepModels } from "./options.ts";
import { requestCancelled, queueTimeoutError } from "./refusals.ts";
import type { SchedulerResult } from "./scheduler.ts";
import { StepGates, WaitingStep } from "./step-gate.ts";

/** The state that all requests of an ensemble share. */
export interface EnsembleSharedState {
  readonly graph: EnsembleGraph;
  readonly gates: StepGates;
  readonly models: StepModels;
  readonly modelVersion: string;
  readonly clock: Clock;
  /** Called when the run has released all tensors, slots and steps. */
  readonly ended: (run: EnsembleRun) => void;
}

/** One response of a decoupled step. */
interface StepResponse {
  readonly outcome: Outcome | null;
  readonly isFinal: boolean;
  readonly taken: () => void;
}

/** Limit of unacknowledged responses to one request. At the limit, further responses and the steps that produce them wait. */
const unacknowledgedMax = 16;
/**
 * Limit of concurrent requests to one decoupled step for one ensemble request. Without it, many requests could produce responses faster
 * than the client reads them.
 */
const streamsMax = 16;

/**
 * One request that an ensemble executes. The request settles with its only response, the first failure, or a cancellation. With decoupled
 * steps, responses go to the request's sink as they are produced, and the request settles with the last one. Steps that still run when the
 * request settles are aborted by their signal, and their results are released.
 *
 * The request's inputs are released at the start: the run has its own references to inputs that steps read. The last step that reads a
 * tensor therefore has the only reference and may overwrite the tensor.
 */
export class EnsembleRun implements FrameRun {
  readonly graph: EnsembleGraph;
  readonly plan: EnsemblePlan;
  readonly promise: Promise<SchedulerResult>;
  readonly #shared: EnsembleSharedState;
  readonly #request: InferenceRequest;
  readonly #record: RequestRecord;
  readonly #root: EnsembleFrame;
  /** Frames of responses that are not finished; null without decoupled steps. */
  readonly #frames: Set<EnsembleFrame> | null;
  /** Limits the running requests of each decoupled step; null when no decoupled step reads from another one. */
  readonly #streams: StepGates | null;
  /** Aborts the other steps when one fails; null when steps never run concurrently. */
  readonly #controller: AbortController | null;
  /** Frames with a complete response that is not sent yet, because too many earlier responses are not acknowledged. */
  #completeFrames: EnsembleFrame[] | null = null;
  #isSending = false;
  #isFinalSent = false;
  #unacknowledgedCount = 0;
  #resolve!: (settlement: SchedulerResult) => void;
  #reject!: (error: InferenceError) => void;
  #state: "running" | "answered" | "settled" = "running";
  /** Number of requests to steps that have not ended. */
  #stepCount = 0;
  /** Steps that wait for a slot of a step's concurrency limit. */
  #waiting: Set<WaitingStep> | null = null;
  /** Fires at the request's deadline; null when no step has waited. */
  #expiry: Disposable | null = null;

  constructor(
    shared: EnsembleSharedState,
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
    this.#root = new EnsembleFrame(this, null, firstResponse);
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

  /** Handles the abort event: cancels the request unless it has settled. */
  handleEvent(): void {
    if (this.#state === "running") this.abandon(requestCancelled(this.#request));
  }

  /** Settles the request with the error. Results of running steps are released when they arrive. */
  abandon(error: InferenceError): void {
    if (this.#state === "settled") return;
    this.#fail(error);
    this.#endIfIdle();
  }

  #begin(frame: EnsembleFrame): void {
    for (const step of frame.firstSteps) this.#reach(frame, step);
    this.#advance(frame);
  }

  /** Starts a step, because all steps before it have ended; the step may have to wait for a slot. */
  #reach(frame: EnsembleFrame, index: number): void {
    if (this.#state !== "running") return;
    frame.openCount++;
    const { gates } = this.#shared;
    const streams = this.#streamsOf(this.graph.steps[index] as GraphStep);
    // A step that finds a free slot, the usual case, starts without an allocation.
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
      this.#stepFailed(queueTimeoutError());
      this.#endIfIdle();
    });
  }

  #run(frame: EnsembleFrame, index: number): void {
    const step = this.graph.steps[index] as GraphStep;
    this.#stepCount++;
    if (step.isDecoupled) void this.#stream(frame, step);
    else void this.#infer(frame, step);
  }

  /** Runs a step that sends one response. This is one async function, because a nested one would cost every step a microtask. */
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
    this.#stepEnded(step);
  }

  async #stream(frame: EnsembleFrame, step: GraphStep): Promise<void> {
    const responseSink: ResponseSink = {
      respond: (outcome, isFinal, consumed) => this.#onStepResponse(frame, step, { outcome, isFinal, taken: consumed }),
    };
    const request = Object.assign(this.#stepRequest(frame, step), { responseSink });
    const record = newRecord(request.receivedNs);
    await this.#shared.models.stream(step.index, request, record);
    this.#addTimes(record);
    this.#streamsOf(step)?.release(step.index);
    this.#stepEnded(step);
  }

  /** Called when a step has released its request and has sent its last response. */
  #stepEnded(step: GraphStep): void {
    this.#stepCount--;
    this.#shared.gates.release(step.index);
    this.#endIfIdle();
  }

  /** Returns the concurrency limit of a decoupled step that runs several times; null for other steps. */
  #streamsOf({ isDecoupled, level }: GraphStep): StepGates | null {
    return isDecoupled && level > 0 ? this.#streams : null;
  }

  #onStepResponse(frame: EnsembleFrame, step: GraphStep, result: StepResponse): void {
    const { outcome, isFinal, taken } = result;
    if (this.#state !== "running") {
      if (outcome !== null && !(outcome instanceof InferenceError)) releaseResponse(outcome);
      return taken();
    }
    if (outcome instanceof InferenceError) {
      this.#stepFailed(outcome);
      return taken();
    }
    // The step is counted as ended before the response is processed, so that a result of this response can be the ensemble's last one.
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
    if (this.#request.responseSink === undefined) return this.#finish(frame);
    (this.#completeFrames ??= []).push(frame);
    this.#sendComplete();
  }

  /** Closes the frame and releases its remaining tensors. */
  #close(frame: EnsembleFrame): void {
    const { parent } = frame;
    frame.releaseTensors();
    this.#frames?.delete(frame);
    frame.releaseCredit();
    if (parent === null) return this.#endResponses();
    parent.openCount--;
    this.#advance(parent);
  }

  // The methods from here on send responses to a sink.

  /** Sends complete responses until the limit of unacknowledged ones is reached. */
  #sendComplete(): void {
    // A sink may acknowledge a response during `respond`, which calls this method again.
    if (this.#isSending) return;
    this.#isSending = true;
    while (this.#state === "running" && this.#unacknowledgedCount < unacknowledgedMax) {
      const frame = this.#completeFrames?.shift();
      if (frame === undefined) break;
      this.#sendResponse(frame);
      if (this.#state === "running") this.#close(frame);
    }
    this.#isSending = false;
  }

  #sendResponse(frame: EnsembleFrame): void {
    frame.holdCredit();
    this.#unacknowledgedCount++;
    this.#isFinalSent = isLast(frame);
    this.#request.responseSink?.respond(this.#response(frame), this.#isFinalSent, () => this.#onAcknowledged(frame));
  }

  #onAcknowledged(frame: EnsembleFrame): void {
    frame.releaseCredit();
    this.#unacknowledgedCount--;
    this.#sendComplete();
  }

  /**
   * Ends the responses of a request with a sink. The request itself settles after its steps were released, because the steps' times are
   * part of the request's record.
   */
  #endResponses(): void {
    this.#state = "answered";
    if (!this.#isFinalSent) this.#request.responseSink?.respond(null, true, () => {});
    this.#endIfIdle();
  }

  // The methods from here on settle a request that has a single response.

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

  #succeed(settlement: SchedulerResult): void {
    const record = this.#record;
    record.executedBatchSize = record.batchSize;
    record.countsExecution = true;
    this.#settle();
    this.#resolve(settlement);
  }

  #stepFailed(error: InferenceError): void {
    const { code, message, reason } = error;
    const fullMessage = `in ensemble '${this.graph.name}', ${message}`;
    // A rejected step counts as a failure of the ensemble's execution, not as a rejection: the ensemble accepted the request and ran.
    const own = reason === "request-refused" ? null : reason;
    this.#fail(new InferenceError(code, fullMessage, { cause: error, reason: own }));
  }

  #fail(error: InferenceError): void {
    if (this.#state === "settled") return;
    this.#settle();
    for (const waiting of this.#waiting ?? []) waiting.cancel();
    this.#waiting = null;
    this.#controller?.abort(error);
    this.#root.discard();
    for (const frame of this.#frames ?? []) frame.discard();
    this.#frames?.clear();
    this.#completeFrames = null;
    this.#reject(error);
  }

  #settle(): void {
    this.#state = "settled";
    this.#expiry?.[Symbol.dispose]();
    this.#request.signal?.removeEventListener("abort", this);
  }

  /** Settles the request when no step is running any more. */
  #endIfIdle(): void {
    if (this.#stepCount > 0 || this.#state === "running") return;
    if (this.#state === "answered") this.#succeed("sent");
    this.#shared.ended(this);
  }

  /** Returns the sequence flags as parameters, which Triton sends with every ensemble response, set or not. */
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
 * Returns whether the response of this frame is the ensemble's last one: no other frame is open, and this frame's response and those of its
 * parents had the final flag. When a step sends its final flag in an empty response, the ensemble ends with an empty final response too.
 */
function isLast(frame: EnsembleFrame): boolean {
  for (let at: EnsembleFrame = frame; at.parent !== null; at = at.parent)
    if (!at.isFinal || at.parent.openCount > 1) return false;
  return true;
}

/** Initial state of the root frame, which results from the request and not from a response. */
const firstResponse = { taken: null, isFinal: true };
