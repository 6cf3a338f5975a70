import { assert, InferenceError, RecyclingMap, type Clock, type Logger } from "@galatea/base";
import type { Execution, InferenceRequest, Instance, InstanceSupervision, Released } from "../../inference/index.ts";
import { ExecutionNotStarted } from "../../inference/index.ts";
import { LoanCollector, toOutcome, ResultDecoder, type FrameContext } from "./execution-codec.ts";
import { frameLimits } from "./frame-limits.ts";
import { planFrames, requestsBytesMax, spacesMax, type FramePlan, type FrameCapacity } from "./frame-plan.ts";
import type { LentBlock } from "./lent-blocks.ts";
import { lendOutputBlocks } from "./lend-output-blocks.ts";
import { executionLimitMs, PythonCallingExecution } from "./calling-execution.ts";
import type { PythonWorker } from "./python-worker.ts";
import { SupervisedWorker } from "./supervised-worker.ts";
import type { PipelineDepth } from "./pipeline-depth.ts";
import type { BusyPolling } from "./busy-polling.ts";
import type { ExecuteEncoder } from "./execute-encoder.ts";
import { failedExecution, measuredExecution, releaseOutcomes, repeatOutcome } from "./execution-outcomes.ts";
import { ExecutionResponses } from "./execution-responses.ts";
import { ExecutionWatch, type RunningExecution } from "./execution-watch.ts";
import type { FailureLog } from "./failure-log.ts";
import {
  decodeSpaceRequest,
  decodeRaised,
  decodeReleased,
  decodeResponse,
  decodeResult,
  readHeader,
} from "./frame-decoder.ts";
import { encodeFrame, encodeSpace, kinds, MalformedRecord, type WireResultResponse, type WireResult } from "./wire.ts";

export interface PythonInstanceOptions {
  readonly name: string;
  readonly frameContext: FrameContext;
  /** Encoder that all instances share. A frame must be sent before the next one is encoded. */
  readonly encoder: ExecuteEncoder;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  /** Starts and initializes a worker. */
  readonly start: (signal: AbortSignal) => Promise<PythonWorker>;
  /** Identity of the loaded model in the call graph. */
  readonly owner: object;
  readonly onHealth: (reason: string | null) => void;
  /** An execution of this duration in milliseconds is reported, with the Python stack of its worker. */
  readonly hangReportMs: number;
  /**
   * Duration in milliseconds after which an execution is ended by killing its worker. Null: only the limits of the requests apply
   * (`executionMsMax`).
   */
  readonly hangKillMs: number | null;
  readonly finalizeMs: number;
  /** State of busy polling, shared by all instances of the server. */
  readonly busyPolling: BusyPolling;
  /** Pipeline depth, shared by the instances of the model. */
  readonly pipelineDepth: PipelineDepth;
  /** Failure log, shared by the instances of the model. */
  readonly failures: FailureLog;
}

interface Pending {
  readonly executionId: number;
  readonly batch: readonly InferenceRequest[];
  readonly brief: boolean;
  readonly limitMs: number | null;
  /** Number of the EXECUTE frame. */
  readonly frameNumber: number;
  readonly spaces: LentBlock[];
  spaceRequestCount: number;
  /** The reason why the worker's last request for output memory was rejected; null if it was not rejected. */
  refusal: InferenceError | null;
  readonly resolve: (execution: Execution) => void;
  readonly reject: (error: ExecutionNotStarted) => void;
}

/**
 * Time in nanoseconds. A request that follows a response within this time probably comes from a client that sends one request after
 * another.
 */
const nearNs = 200_000;

/** An instance of a Python model. It has one worker at a time, and starts another one after a crash. */
export class PythonInstance implements Instance, AsyncDisposable {
  readonly name: string;
  readonly #options: PythonInstanceOptions;
  readonly #frameCapacity: FrameCapacity;
  readonly #pending = new RecyclingMap<Pending>();
  /** Executions with separately sent responses, until the last of these responses has arrived. */
  readonly #responses = new RecyclingMap<ExecutionResponses>();
  /** Executions that have called other models, by id, until their last response. */
  readonly #callers = new RecyclingMap<PythonCallingExecution>();
  readonly #supervised: SupervisedWorker<PythonWorker>;
  #lastExecutionId = 0;
  /** Sizes of the output blocks of the last result. Blocks of these sizes are lent to the next execution in advance. */
  #spaceSizes: readonly number[] = [];
  #spaceRequests = 0;
  /** Time at which the current oldest pending execution became the oldest one, or last sent a response. */
  #headSinceNs = 0;
  readonly #watch: ExecutionWatch;
  #lastResultNs = 0;
  /** Represents the instance in `BusyPolling` without a reference that would keep the instance in memory. */
  readonly #mark = {};

  /** `worker` is null for a dormant instance, whose worker is started on demand. */
  constructor(options: PythonInstanceOptions, worker: PythonWorker | null) {
    this.name = options.name;
    this.#options = options;
    this.#frameCapacity = { inlineBytesMax: options.frameContext.inlineBytesMax, requestsBytesMax };
    this.#watch = new ExecutionWatch({
      clock: options.clock,
      reportMs: options.hangReportMs,
      running: () => this.#running(),
      report: (runMs) => this.#reportStack(runMs),
      end: (limitMs) => this.#supervised.up?.kill(`an execution took more than ${limitMs} ms`),
    });
    this.#supervised = new SupervisedWorker(
      { ...options, onUp: (up) => this.#attach(up), onEnd: (ended, reason) => this.#onEnd(ended, reason) },
      worker,
    );
  }

  get executionsMax(): number {
    return this.#options.pipelineDepth.executionsMax(this.#pending.size === 0 ? null : this.#headSinceNs);
  }

  get supervision(): InstanceSupervision {
    return this.#supervised;
  }

  /** The pid of the running worker; null when there is none. */
  get pid(): number | null {
    return this.#supervised.up?.pid ?? null;
  }

  execute(batch: readonly InferenceRequest[]): Promise<Execution> {
    const plan = planFrames(batch, this.#frameCapacity);
    return plan === null ? this.#executeWhole(batch) : this.#executeInParts(batch, plan);
  }

  #executeWhole(batch: readonly InferenceRequest[]): Promise<Execution> {
    const worker = this.#supervised.up;
    return worker === null ? this.#withoutWorker(batch) : this.#send(worker, batch);
  }

  async #withoutWorker(batch: readonly InferenceRequest[]): Promise<Execution> {
    const { state } = this.#supervised;
    if (state === "restarting" || state === "dormant") throw this.#notBegun();
    const worker = await this.#supervised.coming();
    if (typeof worker !== "string") return await this.#send(worker, batch);
    return failedExecution(batch.length, new InferenceError("INTERNAL", worker));
  }

  #notBegun(): ExecutionNotStarted {
    return new ExecutionNotStarted(`Stub process '${this.name}' is being restarted.`);
  }

  /** The worker skips a batch if all of its requests are cancelled before the batch starts. A running model can query `is_cancelled()`. */
  abandonRequest(request: InferenceRequest): void {
    for (const caller of this.#callers.values()) caller.cancelRequest(request);
    const worker = this.#supervised.up;
    if (worker === null) return;
    for (const { executionId, batch } of this.#pending.values()) {
      const index = batch.indexOf(request);
      if (index === -1) continue;
      const frame = encodeFrame(kinds.cancel, new Uint8Array(), { id: executionId, extra: index });
      this.#responses.get(executionId)?.cancelRequest(request);
      return void worker.sendSoon(frame);
    }
    for (const responses of this.#responses.values()) {
      const index = responses.cancelRequest(request);
      if (index === -1) continue;
      const frame = encodeFrame(kinds.cancel, new Uint8Array(), { id: responses.executionId, extra: index });
      return void worker.sendSoon(frame);
    }
  }

  /**
   * Executes one part of a batch. If the worker ends before it starts the part, waits for this instance's next worker. The part cannot move
   * to another instance, because other parts were already executed here.
   */
  async #executePart(part: readonly InferenceRequest[]): Promise<Execution> {
    for (;;) {
      try {
        return await this.#executeWhole(part);
      } catch (error) {
        if (!(error instanceof ExecutionNotStarted)) throw error;
      }
      await this.#supervised.coming();
      if (part.every(({ signal }) => signal?.aborted))
        return failedExecution(part.length, new InferenceError("CANCELLED", "the request was cancelled"));
    }
  }

  /**
   * Executes a batch in several frames, one after another. Used if one frame is too small. A request fails only if it is too large for any
   * frame.
   */
  async #executeInParts(batch: readonly InferenceRequest[], { parts, refused }: FramePlan): Promise<Execution> {
    const outcomes: Released[] = [];
    for (const [index, error] of refused) outcomes[index] = error;
    let [computeInputNs, computeInferNs, computeOutputNs] = [0, 0, 0];
    for (const part of parts) {
      const execution = await this.#executePart(part.map((index) => batch[index]!));
      part.forEach((index, partIndex) => {
        outcomes[index] = execution.outcomes[partIndex]!;
      });
      computeInputNs += execution.computeInputNs;
      computeInferNs += execution.computeInferNs;
      computeOutputNs += execution.computeOutputNs;
    }
    return { outcomes, computeInputNs, computeInferNs, computeOutputNs };
  }

  #send(worker: PythonWorker, batch: readonly InferenceRequest[]): Promise<Execution> {
    const executionId = (this.#lastExecutionId = (this.#lastExecutionId + 1) >>> 0);
    const collector = new LoanCollector(this.#options.frameContext, worker.lent, executionId);
    const { encoder, busyPolling, pipelineDepth, clock } = this.#options;
    const brief = pipelineDepth.isBrief;
    const nowNs = clock.monotonicNs();
    busyPolling.began(brief);
    const { isLone } = busyPolling;
    const spaces: LentBlock[] = [];
    let frame: Buffer;
    try {
      const requests = batch.map((request) => collector.request(request));
      this.#lendOutputBlocks({ worker, executionId, spaces }, batch.length);
      const mayWaitAwake = busyPolling.mayPoll(this.#mark);
      const nextIsNear = mayWaitAwake && isLone && brief && nowNs - this.#lastResultNs < nearNs;
      frame = encoder.encode({ executionId, loans: collector.loans, spaces, nextIsNear, requests });
    } catch (error) {
      // The frame was not sent, therefore the lent blocks are revoked.
      worker.lent.revoke(collector.loans);
      worker.lent.revoke(spaces);
      busyPolling.ended(false);
      if (!(error instanceof InferenceError)) throw error;
      return Promise.resolve(failedExecution(batch.length, error));
    }
    const limitMs = this.#options.hangKillMs ?? executionLimitMs(batch);
    if (this.#pending.size === 0) this.#becomesOldest(nowNs, limitMs);
    if (this.#options.frameContext.isDecoupled)
      this.#responses.set(
        executionId,
        new ExecutionResponses({ executionId, batch, frameContext: this.#options.frameContext, worker }),
      );
    const frameNumber = isLone ? worker.send(frame) : worker.sendSoon(frame);
    return new Promise((resolve, reject) => {
      const sent = { executionId, batch, brief, limitMs, frameNumber, spaces };
      this.#pending.set(executionId, { ...sent, spaceRequestCount: 0, refusal: null, resolve, reject });
    });
  }

  /** Lends output blocks of the sizes that the last batch of this size used; none when the arena has too little memory. */
  #lendOutputBlocks(
    to: Pick<Pending, "executionId" | "spaces"> & { worker: PythonWorker },
    requestCount: number,
  ): void {
    const { worker, executionId, spaces } = to;
    if (requestCount !== this.#spaceRequests || this.#spaceSizes.length > spacesMax) return;
    try {
      for (const byteLength of this.#spaceSizes)
        spaces.push(worker.lent.lend(this.#options.frameContext.arena.allocate(byteLength), executionId, "space"));
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
    }
  }

  #onFrame(worker: PythonWorker, frame: Buffer): void {
    const { kind, id, extra } = readHeader(frame);
    if (kind === kinds.released) return worker.lent.returnBlocks(decodeReleased(frame));
    if (kind === kinds.raised) return this.#options.failures.report(this.name, () => decodeRaised(frame));
    if (kind === kinds.response || (kind === kinds.spaceRequest && extra !== 0))
      return this.#onResponseFrame(worker, frame);
    const pending = this.#pending.get(id);
    if (pending === undefined) throw new MalformedRecord(`execution ${id}, which is not running`);
    if (kind === kinds.spaceRequest) return this.#giveSpace(worker, pending, decodeSpaceRequest(frame));
    const result = decodeResult(frame);
    if (this.#options.frameContext.isDecoupled) this.#onReleased(worker, pending, result);
    else this.#onResult(worker, pending, result);
  }

  /** Handles a response that is sent separately, or a request for output memory. */
  #onResponseFrame(worker: PythonWorker, frame: Buffer): void {
    const { kind, id, extra: spaceRequestId } = readHeader(frame);
    const responses = this.#responses.get(id);
    if (responses === undefined)
      throw new MalformedRecord(`a result of execution ${id}, which has had all of its responses`);
    if (kind === kinds.response) {
      responses.received(decodeResponse(frame));
      // An execution that continues to send responses is not reported as hanging.
      if (this.#pending.has(id)) this.#headSinceNs = this.#options.clock.monotonicNs();
      if (responses.isOver) this.#remove(id);
      return;
    }
    const lent = lendOutputBlocks(worker.lent, this.#options.frameContext.arena, id, decodeSpaceRequest(frame));
    if (lent instanceof InferenceError) return void worker.send(encodeSpace(id, lent.message, spaceRequestId));
    responses.lent(spaceRequestId, lent);
    worker.send(encodeSpace(id, lent, spaceRequestId));
  }

  /** Handles the end of `execute` of a decoupled model: the instance is free again. */
  #onReleased(worker: PythonWorker, pending: Pending, result: WireResult): void {
    const responses = this.#responses.get(pending.executionId);
    assert(responses !== undefined, "an execution that was not released has pending responses");
    if (result.responses !== null && result.responses.length > 0)
      throw new MalformedRecord(`${result.responses.length} responses in the result of a decoupled model`);
    worker.lent.returnBlocks(result.released);
    const failure = result.responses === null ? this.#batchFailure(pending, result) : null;
    if (failure === null) responses.released();
    else responses.fail(failure);
    const caller = this.#callers.get(pending.executionId);
    if (caller !== undefined) caller.holdsInstance = false;
    if (responses.isOver) this.#remove(pending.executionId);
    const outcomes = failure === null ? responses.sent : repeatOutcome(pending.batch.length, failure);
    this.#ran(pending, result, measuredExecution(result, outcomes));
  }

  /** Removes an execution after its last frame has arrived. */
  #remove(executionId: number): void {
    this.#responses.delete(executionId);
    this.#callers.delete(executionId);
  }

  /**
   * Returns the execution that calls another model; null if the execution has ended. From now on, only one execution at a time is sent to
   * the model.
   */
  #callingExecution(executionId: number): PythonCallingExecution | null {
    const { pipelineDepth, owner, frameContext } = this.#options;
    pipelineDepth.calls = true;
    const known = this.#callers.get(executionId);
    if (known !== undefined) return known;
    const batch = this.#pending.get(executionId)?.batch ?? this.#responses.get(executionId)?.batch;
    if (batch === undefined) return null;
    const caller = new PythonCallingExecution(owner, frameContext.modelName, batch);
    caller.holdsInstance = this.#pending.has(executionId);
    this.#callers.set(executionId, caller);
    return caller;
  }

  #giveSpace(worker: PythonWorker, pending: Pending, sizes: readonly number[]): void {
    // A correct worker waits for each reply. Without this limit, replies to a worker that does not read them would accumulate.
    if (++pending.spaceRequestCount > frameLimits.spaceRequestsMax)
      throw new MalformedRecord(`execution ${pending.executionId} requests space too often`);
    const lent = lendOutputBlocks(worker.lent, this.#options.frameContext.arena, pending.executionId, sizes);
    if (lent instanceof InferenceError) {
      pending.refusal = lent;
      return void worker.send(encodeSpace(pending.executionId, lent.message));
    }
    pending.spaces.push(...lent);
    worker.send(encodeSpace(pending.executionId, lent));
  }

  #onResult(worker: PythonWorker, pending: Pending, result: WireResult): void {
    const outcomes = this.#outcomes(worker, pending, result);
    try {
      worker.lent.returnBlocks(result.released);
    } catch (error) {
      releaseOutcomes(outcomes);
      throw error;
    }
    worker.lent.endSpaces(pending.spaces);
    this.#ran(pending, result, measuredExecution(result, outcomes));
  }

  #ran(pending: Pending, result: WireResult, execution: Execution): void {
    const runNs = result.inputNs + result.inferNs + result.outputNs;
    if (runNs > 0) this.#options.pipelineDepth.ran(runNs);
    this.#lastResultNs = this.#options.clock.monotonicNs();
    this.#supervised.proven();
    this.#settle(pending, execution);
  }

  #outcomes(worker: PythonWorker, pending: Pending, result: WireResult): Released[] {
    if (result.responses === null) return repeatOutcome(pending.batch.length, this.#batchFailure(pending, result));
    if (result.responses.length !== pending.batch.length)
      throw new MalformedRecord(`${result.responses.length} responses to ${pending.batch.length} requests`);
    const reading = new ResultDecoder(result.released, (lentId) => worker.lent.find(lentId, pending.executionId));
    const outcomes: Released[] = [];
    let later: ExecutionResponses | null = null;
    try {
      for (const response of result.responses) {
        if (response.kind === "later") {
          later ??= this.#waitForLateResponses(worker, pending, result.responses);
          outcomes.push(later.sent[outcomes.length]!);
        } else outcomes.push(toOutcome(response, this.#options.frameContext, reading));
      }
    } catch (error) {
      releaseOutcomes(outcomes);
      throw error;
    }
    const { usedSpaces } = reading;
    if (usedSpaces.size > 0 || this.#spaceSizes.length > 0) {
      this.#spaceSizes = Array.from(usedSpaces, (lent) => lent.byteLength);
      this.#spaceRequests = pending.batch.length;
    }
    return outcomes;
  }

  /** Keeps the requests whose responses are sent after `execute` has returned. The model is not decoupled. */
  #waitForLateResponses(
    worker: PythonWorker,
    pending: Pending,
    results: readonly WireResultResponse[],
  ): ExecutionResponses {
    const { executionId, batch } = pending;
    const options = { executionId, batch, frameContext: this.#options.frameContext, worker };
    const responses = new ExecutionResponses(options, (index) => results[index]!.kind === "later");
    responses.released();
    this.#responses.set(executionId, responses);
    const caller = this.#callers.get(executionId);
    if (caller !== undefined) caller.holdsInstance = false;
    return responses;
  }

  #batchFailure(pending: Pending, result: WireResult): InferenceError {
    const message = `Failed to process the request(s) for model '${this.name}', message: ${result.message}`;
    // An execution that was cancelled before it started is not logged as a failure.
    if (result.inferNs > 0)
      this.#options.failures.report(this.name, () => ({ message, requestIds: pending.batch.map(({ id }) => id) }));
    // An out-of-memory error in the model may be temporary, therefore the client may retry.
    const reasonOfWorker = result.isOutOfMemory ? "out-of-memory" : null;
    const { code, reason } = pending.refusal ?? { code: "INTERNAL", reason: reasonOfWorker };
    return new InferenceError(code, message, { reason });
  }

  #settle(pending: Pending, execution: Execution): void {
    this.#pending.delete(pending.executionId);
    if (this.#callers.size > 0 && !this.#responses.has(pending.executionId)) this.#callers.delete(pending.executionId);
    this.#options.busyPolling.ended(pending.brief);
    const next = this.#pending.first;
    if (next !== undefined) this.#becomesOldest(this.#options.clock.monotonicNs(), next.limitMs);
    pending.resolve(execution);
  }

  #attach(worker: PythonWorker): void {
    worker.attach({
      callingExecution: (executionId) => this.#callingExecution(executionId),
      onExecutionFrame: (frame) => this.#onFrame(worker, frame),
    });
  }

  /**
   * Handles the end of a worker. A worker runs executions in the order in which they were sent. Executions after the running one were not
   * started and may be executed again.
   */
  #onEnd(worker: PythonWorker, reason: string): void {
    const [first, ...others] = this.#pending.values();
    const isLost = first !== undefined && worker.neverGot(first.frameNumber);
    const [head, notBegun] = isLost ? [undefined, [first, ...others]] : [first, others];
    this.#pending.clear();
    const died = new InferenceError("INTERNAL", reason);
    // Executions that were not started will be executed again; the next worker sends their responses.
    for (const responses of this.#responses.values()) responses.fail(died);
    this.#responses.clear();
    this.#callers.clear();
    if (head !== undefined) this.#settle(head, failedExecution(head.batch.length, died));
    for (const { reject } of notBegun) {
      this.#options.busyPolling.ended(false);
      reject(this.#notBegun());
    }
  }

  #becomesOldest(nowNs: number, limitMs: number | null): void {
    this.#headSinceNs = nowNs;
    this.#watch.began(nowNs, limitMs);
  }

  #running(): RunningExecution | null {
    const head = this.#pending.first;
    if (head === undefined || this.#supervised.up === null) return null;
    const { executionId, limitMs } = head;
    // An execution that waits for clients to read responses is not reported as hanging.
    if (this.#responses.get(executionId)?.isBlocked === true) this.#headSinceNs = this.#options.clock.monotonicNs();
    const isCalling = this.#callers.get(executionId)?.isCalling === true;
    return { executionId, sinceNs: this.#headSinceNs, limitMs, isCalling };
  }

  #reportStack(runMs: number): void {
    const worker = this.#supervised.up;
    const seconds = (runMs / 1000).toFixed(1);
    this.#options.logger.warning(`executing for ${seconds} s; the Python stack of the worker follows`, {
      instance: this.name,
      pid: worker?.pid ?? 0,
    });
    worker?.printStacks();
  }

  /** Kills the worker, even during an execution, and starts no other one. */
  abandon(reason: string): void {
    this.#supervised.abandon(reason);
  }

  /** Ends the worker after its `finalize`. No execution may be running, except after `abandon`. */
  async [Symbol.asyncDispose](): Promise<void> {
    const closed = this.#supervised.close(this.#options.finalizeMs);
    this.#watch[Symbol.dispose]();
    await closed;
  }
}
