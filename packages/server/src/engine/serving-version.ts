import { assert, InferenceError, type Clock } from "@galatea/base";
import type { LoadedModel, OtherModels } from "../backends/index.ts";
import {
  hasSink,
  type InferenceRequest,
  type InferenceResponse,
  type RequestCaller,
  type RequestRecord,
  type StreamedRequest,
} from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import type { Scheduler, Settlement } from "../scheduling/index.ts";
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

type MapError = (error: InferenceError) => InferenceError;

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

  /**
   * Runs one request and writes its times to `record`. Takes the inputs over in every outcome; every end of a request that was handed
   * over passes through the observer once. A request without `answers` resolves with its one response, or rejects. One with `answers`
   * sends its responses there, the last one in every outcome, be it an error, and never rejects. `refused` maps errors from before the
   * request is handed over.
   */
  submit(request: StreamedRequest, record: RequestRecord, refused?: MapError): Promise<void>;
  submit(request: InferenceRequest, record: RequestRecord, refused?: MapError): Promise<InferenceResponse>;
  submit(request: InferenceRequest, record: RequestRecord, refused: MapError = asItIs): Promise<Settlement | void> {
    if (hasSink(request)) return this.#stream(request, record, refused);
    const refusal = this.#refusalOf(request, record);
    // No function of its own waits for the response: each costs every request a turn.
    return refusal === null ? this.#schedule(request, record) : Promise.reject(refused(refusal));
  }

  async #stream(request: StreamedRequest, record: RequestRecord, refused: MapError): Promise<void> {
    const reshape = this.#reshapes ? (response: InferenceResponse) => this.#reshapeOutputs(response) : null;
    const answers = new AnswerStream(request.answers, reshape);
    try {
      const refusal = this.#refusalOf(request, record);
      if (refusal !== null) throw refused(refusal);
      await this.#schedule({ ...request, answers }, record);
      answers.end(null);
    } catch (error) {
      answers.end(InferenceError.from(error));
    }
  }

  /** Writes the batch size of a request that fits the model. Releases the inputs of one that does not, and returns why. */
  #refusalOf(request: InferenceRequest, record: RequestRecord): InferenceError | null {
    try {
      if (this.config.decoupled && request.answers === undefined) throw this.#isDecoupled();
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
      `model '${this.facts.name}' is decoupled: it gives no one answer to a request`,
    );
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
