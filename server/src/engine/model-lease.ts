import type { AnswerSink, InferenceRequest, InferenceResponse } from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import type { Arena } from "../tensor/index.ts";
import type { ServedModel } from "./engine.ts";
import type { ServingVersion } from "./serving-version.ts";

const noLabels: readonly string[] = [];

/** A version held for a call: it finishes serving only when the lease has ended, or its unload has waited long enough. */
export class ModelLease implements ServedModel {
  readonly #serving: ServingVersion;
  readonly #arenaOf: () => Arena | null;
  readonly #hold: Disposable;

  constructor(serving: ServingVersion, arenaOf: () => Arena | null) {
    this.#serving = serving;
    this.#arenaOf = arenaOf;
    this.#hold = serving.hold();
  }

  get version(): string {
    return this.#serving.version;
  }

  get config(): ModelConfig {
    return this.#serving.config;
  }

  get isHealthy(): boolean {
    return this.#serving.health.unhealthy === null;
  }

  get arena(): Arena | null {
    return this.#arenaOf();
  }

  labelsOf(output: string): readonly string[] {
    return this.#serving.labels.get(output) ?? noLabels;
  }

  infer(request: InferenceRequest): Promise<InferenceResponse> {
    return this.#serving.infer(request);
  }

  stream(request: InferenceRequest, sink: AnswerSink): Promise<void> {
    return this.#serving.stream(request, sink);
  }

  [Symbol.dispose](): void {
    this.#hold[Symbol.dispose]();
  }
}
