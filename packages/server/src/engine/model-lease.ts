import { newRecord, type ResponseSink, type InferenceRequest, type InferenceResponse } from "../inference/index.ts";
import type { Arena } from "../tensor/index.ts";
import type { ServedModel } from "./engine.ts";
import type { ModelView } from "./model-view.ts";
import type { ServingVersion } from "./serving-version.ts";

/** The arenas of the open namespaces, by namespace. */
type Arenas = ReadonlyMap<string, { readonly arena: Arena }>;

/** A lease of a version for one call. The version is unloaded only after the lease has ended, or after the unload's drain time. */
export class ModelLease implements ServedModel {
  readonly #serving: ServingVersion;
  readonly #arenas: Arenas;
  readonly #namespace: string;
  readonly #hold: Disposable;

  constructor(serving: ServingVersion, arenas: Arenas, namespace: string) {
    this.#serving = serving;
    this.#arenas = arenas;
    this.#namespace = namespace;
    this.#hold = serving.lease();
  }

  get view(): ModelView {
    return this.#serving.view;
  }

  get isHealthy(): boolean {
    return this.#serving.health.unhealthy === null;
  }

  get arena(): Arena | null {
    return this.#arenas.get(this.#namespace)?.arena ?? null;
  }

  infer(request: InferenceRequest): Promise<InferenceResponse> {
    return this.#serving.submit(request, newRecord(request.receivedNs));
  }

  stream(request: InferenceRequest, sink: ResponseSink): Promise<void> {
    return this.#serving.submit({ ...request, responseSink: sink }, newRecord(request.receivedNs));
  }

  [Symbol.dispose](): void {
    this.#hold[Symbol.dispose]();
  }
}
