import { InferenceError, type Clock, type Logger } from "../../base/index.ts";
import type { Execution, InferenceRequest, Instance, Outcome } from "../../inference/index.ts";
import { releaseResponse } from "../../inference/index.ts";
import { createBackoff, type Backoff } from "../../processes/index.ts";
import { LoanCollector, outcomeOf, type ModelFacts } from "./execution-codec.ts";
import type { LentBlock } from "./lent-blocks.ts";
import type { PythonWorker } from "./python-worker.ts";
import type { Pace } from "./pace.ts";
import type { Traffic } from "./traffic.ts";
import type { ExecuteEncoder } from "./execute-encoder.ts";
import { decodeAsk, decodeReleased, decodeResult, readHeader } from "./frame-decoder.ts";
import { encodeFrame, encodeSpace, kinds, MalformedRecord, type WireRequest, type WireResult } from "./wire.ts";

export interface InstanceOptions {
  readonly name: string;
  readonly facts: ModelFacts;
  /** Shared by all instances: a frame has left it when `send` returns. */
  readonly encoder: ExecuteEncoder;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  /** A new, initialised worker. */
  readonly start: (signal: AbortSignal) => Promise<PythonWorker>;
  readonly onHealth: (reason: string | null) => void;
  /** An execution of this length is reported with the Python stack of its worker. */
  readonly hangReportMs: number;
  /** An execution of this length ends its worker; null: never. */
  readonly hangKillMs: number | null;
  readonly finalizeMs: number;
  /** Shared by all instances of the server. */
  readonly traffic: Traffic;
  /** Shared by the instances of the model. */
  readonly pace: Pace;
}

type State =
  | { readonly at: "up"; readonly worker: PythonWorker }
  | { readonly at: "starting"; readonly settled: Promise<void> }
  | { readonly at: "down"; readonly reason: string; readonly timer: Disposable }
  | { readonly at: "closed" };

interface Pending {
  readonly executionId: number;
  readonly batch: readonly InferenceRequest[];
  readonly brief: boolean;
  readonly spaces: LentBlock[];
  readonly resolve: (execution: Execution) => void;
}

/** A worker that has lived for so long did not die of its start: the next failure starts the back-off over. */
const soundAfterMs = 10_000;
/** A request that follows an answer within this time is one of a client that sends one after another. */
const nearNs = 200_000;

/** One instance of a Python model: one worker at a time, another when it dies. */
export class PythonInstance implements Instance, AsyncDisposable {
  readonly name: string;
  readonly #options: InstanceOptions;
  readonly #backoff: Backoff;
  readonly #pending = new Map<number, Pending>();
  readonly #closing = new AbortController();
  #state: State;
  #lastExecutionId = 0;
  /** Sizes of the blocks that the last result needed: what the next execution is lent beforehand. */
  #spaceSizes: readonly number[] = [];
  #spaceRequests = 0;
  /** Since when the oldest pending execution is the oldest. */
  #headSinceNs = 0;
  #watch: Disposable | null = null;
  #reportedId = 0;
  #lastResultNs = 0;

  constructor(options: InstanceOptions, worker: PythonWorker) {
    this.name = options.name;
    this.#options = options;
    this.#backoff = createBackoff({ firstMs: 100, maxMs: 30_000, factor: 2, random: options.random });
    this.#state = this.#up(worker);
  }

  get executionsMax(): number {
    return this.#options.pace.executionsMax(this.#pending.size === 0 ? null : this.#headSinceNs);
  }

  /** The living worker's process, null when there is none now. */
  get pid(): number | null {
    return this.#state.at === "up" ? this.#state.worker.pid : null;
  }

  execute(batch: readonly InferenceRequest[]): Promise<Execution> {
    if (this.#state.at === "up") return this.#run(this.#state.worker, batch);
    return this.#executeLater(batch);
  }

  /** The worker executes no batch of which all were given up before it began; a model that executes one can ask `is_cancelled()`. */
  givenUp(request: InferenceRequest): void {
    if (this.#state.at !== "up") return;
    for (const { executionId, batch } of this.#pending.values()) {
      const place = batch.indexOf(request);
      if (place === -1) continue;
      const frame = encodeFrame(kinds.cancel, new Uint8Array(), { id: executionId, extra: place });
      return this.#state.worker.sendSoon(frame);
    }
  }

  /** A worker that is being started is waited for; one that keeps failing is not. */
  async #executeLater(batch: readonly InferenceRequest[]): Promise<Execution> {
    if (this.#state.at === "starting") await this.#state.settled;
    const state = this.#state;
    if (batch.every(({ signal }) => signal?.aborted))
      return failed(batch.length, new InferenceError("CANCELLED", "the request was cancelled"));
    if (state.at === "up") return await this.#run(state.worker, batch);
    const reason = state.at === "down" ? state.reason : `Stub process '${this.name}' is not healthy.`;
    return failed(batch.length, new InferenceError("INTERNAL", reason));
  }

  #run(worker: PythonWorker, batch: readonly InferenceRequest[]): Promise<Execution> {
    const executionId = (this.#lastExecutionId = (this.#lastExecutionId + 1) >>> 0);
    const collector = new LoanCollector(this.#options.facts, worker.lent, executionId);
    const requests: WireRequest[] = [];
    try {
      for (const request of batch) requests.push(collector.request(request));
    } catch (error) {
      worker.lent.takeBack(collector.loans);
      if (!(error instanceof InferenceError)) throw error;
      return Promise.resolve(failed(batch.length, error));
    }
    const spaces = this.#lendSpaces(worker, executionId, batch.length);
    const { encoder, traffic, pace, clock } = this.#options;
    const brief = pace.isBrief;
    traffic.began(brief);
    const nowNs = clock.monotonicNs();
    const { isLone } = traffic;
    const nextIsNear = isLone && brief && nowNs - this.#lastResultNs < nearNs;
    const frame = encoder.encode({ executionId, loans: collector.loans, spaces, nextIsNear, requests });
    if (this.#pending.size === 0) this.#headSinceNs = nowNs;
    this.#watch ??= this.#watchdog();
    if (isLone) worker.send(frame);
    else worker.sendSoon(frame);
    return new Promise((resolve) => {
      this.#pending.set(executionId, { executionId, batch, brief, spaces, resolve });
    });
  }

  /** Space for what the last batch of this size gave; none when the arena has none to spare: the worker will ask. */
  #lendSpaces(worker: PythonWorker, executionId: number, requestCount: number): LentBlock[] {
    const spaces: LentBlock[] = [];
    if (requestCount !== this.#spaceRequests) return spaces;
    try {
      for (const byteLength of this.#spaceSizes)
        spaces.push(worker.lent.lend(this.#options.facts.arena.allocate(byteLength), executionId, "space"));
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
    }
    return spaces;
  }

  #onFrame(worker: PythonWorker, frame: Buffer): void {
    const { kind, id } = readHeader(frame);
    if (kind === kinds.released) return worker.lent.giveBack(decodeReleased(frame));
    const pending = this.#pending.get(id);
    if (pending === undefined) throw new MalformedRecord(`execution ${id}, which is not running`);
    if (kind === kinds.ask) return this.#giveSpace(worker, pending, decodeAsk(frame));
    this.#onResult(worker, pending, decodeResult(frame));
  }

  #giveSpace(worker: PythonWorker, pending: Pending, sizes: readonly number[]): void {
    const asked: LentBlock[] = [];
    try {
      for (const byteLength of sizes) {
        const block = this.#options.facts.arena.allocate(byteLength);
        asked.push(worker.lent.lend(block, pending.executionId, "space"));
      }
    } catch (error) {
      worker.lent.takeBack(asked);
      if (!(error instanceof InferenceError)) throw error;
      return worker.send(encodeSpace(pending.executionId, error.message));
    }
    pending.spaces.push(...asked);
    worker.send(encodeSpace(pending.executionId, asked));
  }

  #onResult(worker: PythonWorker, pending: Pending, result: WireResult): void {
    const outcomes = this.#outcomes(worker, pending, result);
    try {
      worker.lent.giveBack(result.released);
    } catch (error) {
      for (const outcome of outcomes) if (!(outcome instanceof InferenceError)) releaseResponse(outcome);
      throw error;
    }
    worker.lent.endSpaces(pending.spaces);
    const runNs = result.inputNs + result.inferNs + result.outputNs;
    if (runNs > 0) this.#options.pace.ran(runNs);
    this.#lastResultNs = this.#options.clock.monotonicNs();
    this.#settle(pending, {
      outcomes,
      computeInputNs: result.inputNs,
      computeInferNs: result.inferNs,
      computeOutputNs: result.outputNs,
    });
  }

  #outcomes(worker: PythonWorker, pending: Pending, result: WireResult): Outcome[] {
    if (result.responses === null) {
      const message = `Failed to process the request(s) for model '${this.name}', message: ${result.message}`;
      return repeated(pending.batch.length, new InferenceError("INTERNAL", message));
    }
    if (result.responses.length !== pending.batch.length)
      throw new MalformedRecord(`${result.responses.length} responses to ${pending.batch.length} requests`);
    const used = new Set<LentBlock>();
    const find = (lentId: number) => {
      const lent = worker.lent.find(lentId, pending.executionId);
      if (lent.use === "space") used.add(lent);
      return lent;
    };
    const outcomes: Outcome[] = [];
    try {
      for (const response of result.responses) outcomes.push(outcomeOf(response, this.#options.facts, find));
    } catch (error) {
      for (const outcome of outcomes) if (!(outcome instanceof InferenceError)) releaseResponse(outcome);
      throw error;
    }
    if (used.size > 0 || this.#spaceSizes.length > 0) {
      this.#spaceSizes = Array.from(used, (lent) => lent.byteLength);
      this.#spaceRequests = pending.batch.length;
    }
    return outcomes;
  }

  #settle(pending: Pending, execution: Execution): void {
    this.#pending.delete(pending.executionId);
    this.#options.traffic.ended(pending.brief);
    if (this.#pending.size > 0) this.#headSinceNs = this.#options.clock.monotonicNs();
    pending.resolve(execution);
  }

  // Supervision.

  #up(worker: PythonWorker): State {
    const sound = this.#options.clock.timer(soundAfterMs, () => this.#backoff.succeeded());
    worker.attach({
      onExecutionFrame: (frame) => this.#onFrame(worker, frame),
      onEnd: (reason) => {
        sound[Symbol.dispose]();
        this.#onEnd(worker, reason);
      },
    });
    return { at: "up", worker };
  }

  #onEnd(worker: PythonWorker, reason: string): void {
    const [head, ...notBegun] = this.#pending.values();
    this.#pending.clear();
    if (head !== undefined) this.#settle(head, failed(head.batch.length, new InferenceError("INTERNAL", reason)));
    if (this.#state.at === "up" && this.#state.worker === worker) {
      this.#options.logger.error(reason, { instance: this.name });
      this.#options.onHealth(reason);
      this.#afterFailure(reason);
    }
    for (const pending of notBegun) void this.#runAgain(pending);
  }

  /** A worker executes in order: what waited behind the execution that it died of had not begun. */
  async #runAgain(pending: Pending): Promise<void> {
    this.#options.traffic.ended(false);
    pending.resolve(await this.#executeLater(pending.batch));
  }

  /** The first failure is answered at once, those that follow it with growing waits. */
  #afterFailure(reason: string): void {
    const first = this.#backoff.failureCount === 0;
    const waitMs = this.#backoff.next();
    if (first) return this.#restart();
    this.#state = { at: "down", reason, timer: this.#options.clock.timer(waitMs, () => this.#restart()) };
  }

  #restart(): void {
    const settled = this.#options.start(this.#closing.signal).then(
      (worker) => {
        if (this.#closing.signal.aborted) return worker.finalize(0);
        this.#state = this.#up(worker);
        this.#options.onHealth(null);
        return undefined;
      },
      (error: unknown) => {
        if (this.#closing.signal.aborted) return;
        const { message } = InferenceError.from(error);
        this.#options.logger.error(`restart failed: ${message}`, { instance: this.name });
        this.#afterFailure(`Stub process '${this.name}' is not healthy. (restart failed: ${message})`);
      },
    );
    this.#state = { at: "starting", settled };
  }

  /** Looks once per report interval whether the oldest execution is still the same one. */
  #watchdog(): Disposable {
    const { clock, hangReportMs, hangKillMs } = this.#options;
    return clock.timer(Math.min(hangReportMs, hangKillMs ?? hangReportMs), () => {
      this.#watch = null;
      const head = this.#pending.values().next().value;
      if (head === undefined || this.#state.at !== "up") return;
      const { worker } = this.#state;
      const runMs = (clock.monotonicNs() - this.#headSinceNs) / 1e6;
      if (hangKillMs !== null && runMs >= hangKillMs) worker.kill(`an execution took more than ${hangKillMs} ms`);
      else if (runMs >= hangReportMs && this.#reportedId !== head.executionId) {
        this.#reportedId = head.executionId;
        const seconds = (runMs / 1000).toFixed(1);
        this.#options.logger.warning(`executing for ${seconds} s; the Python stack of the worker follows`, {
          instance: this.name,
          pid: worker.pid,
        });
        worker.printStacks();
      }
      this.#watch = this.#watchdog();
    });
  }

  /** Ends the worker, its `finalize` first. No execution may be running. */
  async [Symbol.asyncDispose](): Promise<void> {
    const state = this.#state;
    this.#closing.abort(new Error("the model is unloaded"));
    this.#state = { at: "closed" };
    this.#watch?.[Symbol.dispose]();
    if (state.at === "up") await state.worker.finalize(this.#options.finalizeMs);
    if (state.at === "starting") await state.settled;
    if (state.at === "down") state.timer[Symbol.dispose]();
  }
}

function failed(requestCount: number, error: InferenceError): Execution {
  return { outcomes: repeated(requestCount, error), computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 };
}

function repeated(count: number, error: InferenceError): Outcome[] {
  return Array.from({ length: count }, () => error);
}
