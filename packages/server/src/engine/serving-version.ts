import { assert, InferenceError, type Clock } from "@galatea/base";
import type { LoadedModel, BlsClient } from "../backends/index.ts";
import {
  hasResponseSink,
  type InferenceRequest,
  type InferenceResponse,
  type RequestCaller,
  type RequestRecord,
  type StreamedRequest,
} from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import type { Scheduler, SchedulerResult } from "../scheduling/index.ts";
import { releaseTensors, type Tensor } from "../tensor/index.ts";
import { ResponseStream } from "./response-stream.ts";
import type { CallGraph } from "./call-graph.ts";
import { checkRequest } from "./check-request.ts";
import { modelFacts, reshaped, reshapedInputs, type ModelFacts } from "./model-facts.ts";
import type { ModelView } from "./model-view.ts";
import type { RequestObserver } from "./request-observer.ts";

/** The health of a loaded model: null while it is healthy, otherwise the reason. */
export interface ModelHealth {
  unhealthy: string | null;
}

type MapError = (error: InferenceError) => InferenceError;

/** One loaded version of a model with its scheduler. Runs inferences and reports each request's record to the observer. */
export class ServingVersion implements AsyncDisposable {
  readonly config: ModelConfig;
  readonly facts: ModelFacts;
  readonly version: string;
  readonly model: LoadedModel | null;
  readonly health: ModelHealth;
  readonly view: ModelView;
  readonly #scheduler: Scheduler;
  readonly #observer: RequestObserver;
  readonly #clock: Clock;
  readonly #drainMsMax: number;
  readonly #calls: CallGraph;
  /** Identity of this version in the call graph: the `owner` of its executions. */
  readonly #owner: object;
  readonly #reshapes: boolean;
  readonly #steps: readonly ServingVersion[];
  /** Number of running ensembles that have this version as a step. They use it even after a newer one has replaced it. */
  #holderCount = 0;
  #released: () => void = () => {};
  /** Number of calls that have a lease of this version. */
  #callCount = 0;
  /** Resolved when the last call has ended; null when no caller waits for that. */
  #idle: PromiseWithResolvers<void> | null = null;

  constructor(parts: {
    config: ModelConfig;
    version: number;
    /** The loaded model; null for an ensemble, which has no instances. */
    model: LoadedModel | null;
    /** The versions that an ensemble's steps run on, which stay loaded until the ensemble has ended; empty for a model. */
    steps: readonly ServingVersion[];
    health: ModelHealth;
    labels: ReadonlyMap<string, readonly string[]>;
    scheduler: Scheduler;
    observer: RequestObserver;
    clock: Clock;
    calls: CallGraph;
    /** The model's client for calls of other models (BLS); null for an ensemble. */
    bls: BlsClient | null;
    /** Time in milliseconds that disposal waits for requests and for the model's own code. */
    drainMsMax: number;
  }) {
    this.config = parts.config;
    this.facts = modelFacts(parts.config);
    this.version = String(parts.version);
    this.model = parts.model;
    this.health = parts.health;
    this.#steps = parts.steps;
    for (const step of parts.steps) step.#holderCount++;
    this.view = Object.freeze({ version: this.version, config: parts.config, labels: parts.labels });
    this.#scheduler = parts.scheduler;
    this.#observer = parts.observer;
    this.#clock = parts.clock;
    this.#drainMsMax = parts.drainMsMax;
    this.#calls = parts.calls;
    this.#owner = parts.bls ?? this;
    this.#reshapes =
      this.facts.inputs.some((input) => input.backendShape !== null) ||
      [...this.facts.outputByName.values()].some((output) => output.backendShape !== null);
  }

  /**
   * Runs one request and writes its times to `record`. Takes ownership of the inputs, even when it fails. Every request that reached the
   * scheduler is reported to the observer exactly once.
   *
   * Without a `responseSink`, it resolves with the only response, or rejects. With one, responses and errors go to the sink, which always
   * receives a final one, and the promise never rejects. `refused` maps errors from before the request reached the scheduler.
   */
  submit(request: StreamedRequest, record: RequestRecord, refused?: MapError): Promise<void>;
  submit(request: InferenceRequest, record: RequestRecord, refused?: MapError): Promise<InferenceResponse>;
  submit(
    request: InferenceRequest,
    record: RequestRecord,
    refused: MapError = asItIs,
  ): Promise<SchedulerResult | void> {
    if (hasResponseSink(request)) return this.#stream(request, record, refused);
    const refusal = this.#refusalOf(request, record);
    // Not an async function: each would cost every request a microtask.
    return refusal === null ? this.#schedule(request, record) : Promise.reject(refused(refusal));
  }

  async #stream(request: StreamedRequest, record: RequestRecord, refused: MapError): Promise<void> {
    const reshape = this.#reshapes ? (response: InferenceResponse) => this.#reshapeOutputs(response) : null;
    const responses = new ResponseStream(request.responseSink, reshape);
    try {
      const refusal = this.#refusalOf(request, record);
      if (refusal !== null) throw refused(refusal);
      await this.#schedule({ ...request, responseSink: responses }, record);
      responses.end(null);
    } catch (error) {
      responses.end(InferenceError.from(error));
    }
  }

  /**
   * Returns the reason why a request is invalid, and releases its inputs. For a valid request, returns null and writes the batch size to
   * `record`.
   */
  #refusalOf(request: InferenceRequest, record: RequestRecord): InferenceError | null {
    try {
      if (this.config.decoupled && request.responseSink === undefined) throw this.#isDecoupled();
      record.batchSize = checkRequest(request, this.facts);
      return null;
    } catch (error) {
      releaseTensors(request.inputs);
      return InferenceError.from(error);
    }
  }

  #isDecoupled(): InferenceError {
    return new InferenceError(
      "UNSUPPORTED",
      `model '${this.facts.name}' is decoupled: it does not return exactly one response per request`,
    );
  }
  #schedule(request: InferenceRequest, record: RequestRecord): Promise<SchedulerResult> {
    const { caller } = request;
    return caller === null || this.model === null
      ? this.#run(request, record)
      : this.#runCalled(request, record, { caller, model: this.model });
  }

  /** Runs the request of another model. When the call graph finds it in a deadlock, the request ends with the call graph's error. */
  async #runCalled(
    request: InferenceRequest,
    record: RequestRecord,
    { caller, model }: { readonly caller: RequestCaller; readonly model: LoadedModel },
  ): Promise<SchedulerResult> {
    using open = this.#calls.begin({
      caller,
      get instanceCount() {
        const awake = model.spares?.filter(({ supervision }) => supervision?.state !== "dormant") ?? [];
        return model.instances.length + awake.length;
      },
      target: this.#owner,
      targetName: this.facts.name,
      isStreamed: request.responseSink !== undefined,
      get isQueued() {
        return record.startedNs === 0;
      },
    });
    const signal = request.signal === null ? open.signal : AbortSignal.any([request.signal, open.signal]);
    try {
      return await this.#run({ ...request, signal }, record);
    } catch (error) {
      throw open.signal.aborted ? open.signal.reason : error;
    }
  }

  async #run(request: InferenceRequest, record: RequestRecord): Promise<SchedulerResult> {
    const toBackend = this.#reshapes ? { ...request, inputs: reshapedInputs(request.inputs, this.facts) } : request;
    try {
      const settlement = await this.#scheduler.infer(toBackend, record, () => releaseTensors(request.inputs));
      this.#observer.succeeded(record, this.#clock.monotonicNs(), this.#clock.epochMs());
      assert(settlement !== "sent" || request.responseSink !== undefined, "a request without a sink has a response");
      return this.#reshapes && settlement !== "sent" ? this.#reshapeOutputs(settlement) : settlement;
    } catch (thrown) {
      const error = InferenceError.from(thrown);
      this.#observer.failed(record, this.#clock.monotonicNs(), error);
      throw error;
    }
  }

  /**
   * Converts outputs from `reshape` to `dims`. An output that the backend returns in another shape than configured is sent unchanged, as
   * Triton does for Python models.
   */
  #reshapeOutputs(response: InferenceResponse): InferenceResponse {
    const outputs = response.outputs.map((tensor): Tensor => {
      const facts = this.facts.outputByName.get(tensor.name);
      if (facts === undefined || facts.backendShape === null) return tensor;
      const shape = reshaped(tensor.shape, facts.backendShape, facts.shape);
      return shape === null ? tensor : { ...tensor, shape };
    });
    return { ...response, outputs };
  }

  /**
   * Leases this version for a call: all requests of the call use it, even if it is replaced meanwhile. Disposing the result ends the lease.
   */
  lease(): Disposable {
    this.#callCount++;
    return new CallLease(this.#disconnect);
  }

  readonly #disconnect = (): void => {
    if (--this.#callCount === 0) this.#becomeIdle();
  };

  /** Resolves when no call has a lease of this version. */
  whenIdle(): Promise<void> {
    if (this.#callCount === 0) return Promise.resolve();
    this.#idle ??= Promise.withResolvers<void>();
    return this.#idle.promise;
  }

  #becomeIdle(): void {
    this.#idle?.resolve();
    this.#idle = null;
  }

  get isIdle(): boolean {
    return this.#callCount === 0;
  }

  /** Fails running requests and ends the model's instances by force, for a version that hangs. The caller must still dispose it. */
  abandon(why: string): void {
    const message = `model '${this.facts.name}' version ${this.version} was ended while it executed: ${why}`;
    this.#becomeIdle();
    this.#scheduler.abandon(new InferenceError("UNAVAILABLE", message));
    this.model?.abandon?.(why);
  }

  /**
   * Waits for the ensembles and calls that use this version, rejects new requests, waits for running ones, then ends the model's instances.
   * After `drainMsMax` the version is abandoned.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    using _late = this.#clock.timer(this.#drainMsMax, () => {
      this.abandon(`its unload waited for ${this.#drainMsMax / 1000} s`);
    });
    if (this.#holderCount > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#released = resolve;
      await promise;
    }
    await this.whenIdle();
    try {
      await this.#scheduler.close();
      await this.model?.[Symbol.asyncDispose]();
    } finally {
      for (const step of this.#steps) step.#release();
    }
  }

  #release(): void {
    this.#holderCount--;
    if (this.#holderCount === 0) this.#released();
  }
}

function asItIs(error: InferenceError): InferenceError {
  return error;
}

/** A lease; created for each call, therefore as small as possible. */
class CallLease implements Disposable {
  #disconnect: (() => void) | null;

  constructor(disconnect: () => void) {
    this.#disconnect = disconnect;
  }

  [Symbol.dispose](): void {
    const disconnect = this.#disconnect;
    this.#disconnect = null;
    disconnect?.();
  }
}
