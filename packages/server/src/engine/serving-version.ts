import { assert, InferenceError, type Clock } from "@galatea/base";
import type { LoadedModel, OtherModels } from "../backends/index.ts";
import {
  newRecord,
  type AnswerSink,
  type InferenceRequest,
  type InferenceResponse,
  type RequestCaller,
  type RequestRecord,
} from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import type { Scheduler, Settlement, StepResult } from "../scheduling/index.ts";
import { releaseTensors, type Tensor } from "../tensor/index.ts";
import { AnswerStream } from "./answer-stream.ts";
import type { CallGraph } from "./call-graph.ts";
import { checkRequest } from "./check-request.ts";
import { modelFacts, reshaped, reshapedInputs, type ModelFacts } from "./model-facts.ts";
import type { ModelView } from "./model-view.ts";
import type { RequestObserver } from "./request-observer.ts";

/** What a model says of itself after loading: null while all is well. */
export interface ModelHealth {
  unhealthy: string | null;
}

/** One loaded version of a model with its scheduler: where an inference happens and where its one record is read. */
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
  /** Itself, where calls between models are looked at: what its executions name as their owner. */
  readonly #owner: object;
  readonly #reshapes: boolean;
  readonly #steps: readonly ServingVersion[];
  /** Ensembles made of this version that have not ended; it answers them whatever has taken its place. */
  #holderCount = 0;
  #released: () => void = () => {};
  /** Calls that have been given this version and have not ended. */
  #callCount = 0;
  /** Of those who wait for the end of all of them. */
  #idle: PromiseWithResolvers<void> | null = null;

  constructor(parts: {
    config: ModelConfig;
    version: number;
    /** Null for an ensemble, which has no instances of its own. */
    model: LoadedModel | null;
    /** Of an ensemble: what its steps run on, held until it has ended. */
    steps: readonly ServingVersion[];
    health: ModelHealth;
    labels: ReadonlyMap<string, readonly string[]>;
    scheduler: Scheduler;
    observer: RequestObserver;
    clock: Clock;
    calls: CallGraph;
    /** The door that its model was given; null for an ensemble. */
    door: OtherModels | null;
    /** How long its end waits for requests and for the model's own code. */
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
    this.#owner = parts.door ?? this;
    this.#reshapes =
      this.facts.inputs.some((input) => input.backendShape !== null) ||
      [...this.facts.outputByName.values()].some((output) => output.backendShape !== null);
  }

  /** Takes the request's inputs over in every outcome; every end, good or bad, passes through the observer once. */
  infer(request: InferenceRequest): Promise<InferenceResponse> {
    let record: RequestRecord;
    try {
      if (this.config.decoupled) throw this.#isDecoupled();
      record = newRecord(request.receivedNs, checkRequest(request, this.facts));
    } catch (error) {
      releaseTensors(request.inputs);
      return Promise.reject(error);
    }
    return this.#responseTo(request, record);
  }

  /** The same for another model; an error from before the request is handed over passes through `refused`. */
  inferCalled(
    request: InferenceRequest,
    refused: (error: InferenceError) => InferenceError,
  ): Promise<InferenceResponse> {
    let record: RequestRecord;
    try {
      record = newRecord(request.receivedNs, this.#checked(request));
    } catch (error) {
      return Promise.reject(refused(InferenceError.from(error)));
    }
    return this.#responseTo(request, record);
  }

  /**
   * The same for a decoupled model, whose answers go to `sink`: the last one in every outcome, be it an error. Resolves when that has been
   * given; never rejects.
   */
  async stream(
    request: InferenceRequest,
    sink: AnswerSink,
    refused: (error: InferenceError) => InferenceError = asItIs,
  ): Promise<void> {
    await this.streamStep(request, sink, refused);
  }

  #isDecoupled(): InferenceError {
    return new InferenceError(
      "UNSUPPORTED",
      `model '${this.facts.name}' is decoupled: it gives no one answer to a request`,
    );
  }

  #checked(request: InferenceRequest, refused: (error: InferenceError) => InferenceError = asItIs): number {
    try {
      return checkRequest(request, this.facts);
    } catch (error) {
      releaseTensors(request.inputs);
      throw refused(InferenceError.from(error));
    }
  }

  /** The same for an ensemble's step, which adds the record's times to its own. */
  async inferStep(request: InferenceRequest): Promise<StepResult> {
    let record: RequestRecord;
    try {
      record = newRecord(request.receivedNs, checkRequest(request, this.facts));
    } catch (error) {
      releaseTensors(request.inputs);
      throw error;
    }
    return { response: await this.#responseTo(request, record), record };
  }

  /** The same, with the times of the request. */
  async streamStep(
    request: InferenceRequest,
    sink: AnswerSink,
    refused: (error: InferenceError) => InferenceError = asItIs,
  ): Promise<RequestRecord> {
    const answers = new AnswerStream(sink, this.#reshapes ? (response) => this.#reshapeOutputs(response) : null);
    const record = newRecord(request.receivedNs, 1);
    try {
      record.batchSize = this.#checked(request, refused);
      await this.#schedule({ ...request, answers }, record);
      answers.end(null);
    } catch (error) {
      answers.end(InferenceError.from(error));
    }
    return record;
  }

  /** No function of its own waits for it: each costs every request a turn. `#schedule` asserts what is claimed here. */
  #responseTo(request: InferenceRequest, record: RequestRecord): Promise<InferenceResponse> {
    return this.#schedule(request, record) as Promise<InferenceResponse>;
  }

  #schedule(request: InferenceRequest, record: RequestRecord): Promise<Settlement> {
    const { caller } = request;
    return caller === null || this.model === null
      ? this.#run(request, record)
      : this.#runCalled(request, record, { caller, model: this.model });
  }

  /** A request of another model may wait for what waits for it: then it ends with the graph's word. */
  async #runCalled(
    request: InferenceRequest,
    record: RequestRecord,
    { caller, model }: { readonly caller: RequestCaller; readonly model: LoadedModel },
  ): Promise<Settlement> {
    using open = this.#calls.begin({
      caller,
      get instanceCount() {
        const awake = model.spares?.filter(({ supervision }) => supervision?.state !== "dormant") ?? [];
        return model.instances.length + awake.length;
      },
      target: this.#owner,
      targetName: this.facts.name,
      isStreamed: request.answers !== undefined,
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

  async #run(request: InferenceRequest, record: RequestRecord): Promise<Settlement> {
    const toBackend = this.#reshapes ? { ...request, inputs: reshapedInputs(request.inputs, this.facts) } : request;
    try {
      const settlement = await this.#scheduler.infer(toBackend, record, () => releaseTensors(request.inputs));
      this.#observer.succeeded(record, this.#clock.monotonicNs(), this.#clock.epochMs());
      assert(settlement !== "sent" || request.answers !== undefined, "a request without a sink has a response");
      return this.#reshapes && settlement !== "sent" ? this.#reshapeOutputs(settlement) : settlement;
    } catch (thrown) {
      const error = InferenceError.from(thrown);
      this.#observer.failed(record, this.#clock.monotonicNs(), error);
      throw error;
    }
  }

  /** An output the backend made in another form than configured goes out as made, as Triton does for Python models. */
  #reshapeOutputs(response: InferenceResponse): InferenceResponse {
    const outputs = response.outputs.map((tensor): Tensor => {
      const facts = this.facts.outputByName.get(tensor.name);
      if (facts === undefined || facts.backendShape === null) return tensor;
      const shape = reshaped(tensor.shape, facts.backendShape, facts.shape);
      return shape === null ? tensor : { ...tensor, shape };
    });
    return { ...response, outputs };
  }

  /** Keeps it serving for a call until the call has ended: requests of the call find it as it was when its name was looked up. */
  hold(): Disposable {
    this.#callCount++;
    return new Hold(this.#leave);
  }

  readonly #leave = (): void => {
    if (--this.#callCount === 0) this.#becomeIdle();
  };

  /** Resolves when no call holds it: at once, or when the last that does now, or comes meanwhile, has ended. */
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

  /** Fails what is in flight and ends the model's instances by force. For a version that hangs; it is disposed of all the same. */
  abandon(why: string): void {
    const message = `model '${this.facts.name}' version ${this.version} was ended while it executed: ${why}`;
    this.#becomeIdle();
    this.#scheduler.abandon(new InferenceError("UNAVAILABLE", message));
    this.model?.abandon?.(why);
  }

  /**
   * Waits for the ensembles and the calls that hold it, refuses new requests, waits for those in flight, then ends the model's instances. All of that
   * has `drainMsMax`; then it is abandoned.
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

/** One is made for each call: an object and nothing else. */
class Hold implements Disposable {
  #leave: (() => void) | null;

  constructor(leave: () => void) {
    this.#leave = leave;
  }

  [Symbol.dispose](): void {
    const leave = this.#leave;
    this.#leave = null;
    leave?.();
  }
}
