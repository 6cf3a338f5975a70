import { InferenceError, type Clock } from "../base/index.ts";
import type { LoadedModel } from "../backends/index.ts";
import { newRecord, type InferenceRequest, type InferenceResponse, type RequestRecord } from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import type { Scheduler, StepResult } from "../scheduling/index.ts";
import { releaseTensors, type Tensor } from "../tensor/index.ts";
import { checkRequest } from "./check-request.ts";
import { modelFacts, reshaped, type ModelFacts } from "./model-facts.ts";
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
  /** Output name to its labels, for the classification extension. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
  readonly #scheduler: Scheduler;
  readonly #observer: RequestObserver;
  readonly #clock: Clock;
  readonly #reshapes: boolean;
  readonly #steps: readonly ServingVersion[];
  /** Ensembles made of this version that have not ended; it answers them whatever has taken its place. */
  #holderCount = 0;
  #released: () => void = () => {};

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
  }) {
    this.config = parts.config;
    this.facts = modelFacts(parts.config);
    this.version = String(parts.version);
    this.model = parts.model;
    this.health = parts.health;
    this.#steps = parts.steps;
    for (const step of parts.steps) step.#holderCount++;
    this.labels = parts.labels;
    this.#scheduler = parts.scheduler;
    this.#observer = parts.observer;
    this.#clock = parts.clock;
    this.#reshapes =
      this.facts.inputs.some((input) => input.backendShape !== null) ||
      [...this.facts.outputByName.values()].some((output) => output.backendShape !== null);
  }

  /** Takes the request's inputs over in every outcome; every end, good or bad, passes through the observer once. */
  infer(request: InferenceRequest): Promise<InferenceResponse> {
    let record: RequestRecord;
    try {
      record = newRecord(this.#clock.monotonicNs(), checkRequest(request, this.facts));
    } catch (error) {
      releaseTensors(request.inputs);
      return Promise.reject(error);
    }
    return this.#schedule(request, record);
  }

  /** The same for an ensemble's step, which adds the record's times to its own. */
  async inferStep(request: InferenceRequest): Promise<StepResult> {
    let record: RequestRecord;
    try {
      record = newRecord(this.#clock.monotonicNs(), checkRequest(request, this.facts));
    } catch (error) {
      releaseTensors(request.inputs);
      throw error;
    }
    return { response: await this.#schedule(request, record), record };
  }

  async #schedule(request: InferenceRequest, record: RequestRecord): Promise<InferenceResponse> {
    const toBackend = this.#reshapes ? this.#reshapeInputs(request) : request;
    try {
      const response = await this.#scheduler.infer(toBackend, record, () => releaseTensors(request.inputs));
      this.#observer.succeeded(record, this.#clock.monotonicNs(), this.#clock.epochMs());
      return this.#reshapes ? this.#reshapeOutputs(response) : response;
    } catch (thrown) {
      const error = InferenceError.from(thrown);
      this.#observer.failed(record, this.#clock.monotonicNs(), error);
      throw error;
    }
  }

  #reshapeInputs(request: InferenceRequest): InferenceRequest {
    const inputs = request.inputs.map((tensor): Tensor => {
      const facts = this.facts.inputByName.get(tensor.name);
      if (facts === undefined || facts.backendShape === null) return tensor;
      const shape = reshaped(tensor.shape, facts.shape, facts.backendShape);
      return shape === null ? tensor : { ...tensor, shape };
    });
    return { ...request, inputs };
  }

  /** An output the backend made in another form than configured goes out as made, as the original does for Python models. */
  #reshapeOutputs(response: InferenceResponse): InferenceResponse {
    const outputs = response.outputs.map((tensor): Tensor => {
      const facts = this.facts.outputByName.get(tensor.name);
      if (facts === undefined || facts.backendShape === null) return tensor;
      const shape = reshaped(tensor.shape, facts.backendShape, facts.shape);
      return shape === null ? tensor : { ...tensor, shape };
    });
    return { ...response, outputs };
  }

  /** Waits for the ensembles that hold it, refuses new requests, waits for those in flight, then ends the model's instances. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#holderCount > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#released = resolve;
      await promise;
    }
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
