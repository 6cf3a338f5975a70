import { InferenceError, type Clock } from "@galatea/base";
import type { ModelCall, OtherModels } from "../backends/index.ts";
import {
  deadlineFromNow,
  newRecord,
  type AnswerSink,
  type InferenceRequest,
  type InferenceResponse,
} from "../inference/index.ts";
import { releaseTensors } from "../tensor/index.ts";
import type { LoadOverride } from "./engine.ts";
import type { ModelEntry, ModelTable } from "./model-entry.ts";
import type { ServingVersion } from "./serving-version.ts";

export interface ModelCallerDependencies {
  readonly table: ModelTable;
  readonly clock: Clock;
  readonly load: (namespace: string, name: string, override: LoadOverride | null, signal: AbortSignal) => Promise<void>;
  readonly unload: (namespace: string, name: string, unloadDependents: boolean) => Promise<void>;
  /** Returns whether the namespace serves only running work and accepts no new requests. */
  readonly isClosing: (namespace: string) => boolean;
}

/** A call to a version, as it is executed. */
interface Begun {
  readonly serving: ServingVersion;
  readonly request: InferenceRequest;
}

/** Maximum depth of nested calls. Each level has its own execution, and memory for its tensors. */
const depthMax = 32;

/** Calls from one loaded model to the other models of its own namespace. */
export class ModelCaller implements OtherModels {
  readonly #parts: ModelCallerDependencies;
  readonly #namespace: string;
  #isLoaded = false;

  constructor(parts: ModelCallerDependencies, namespace: string) {
    this.#parts = parts;
    this.#namespace = namespace;
  }

  /** Marks the calling model as loaded. */
  loaded(): void {
    this.#isLoaded = true;
  }

  async infer(call: ModelCall): Promise<InferenceResponse> {
    const { serving, request } = this.#begin(call);
    using _held = serving.hold();
    const refused = (error: InferenceError) => calledInVain(call, error);
    if (serving.config.decoupled) {
      releaseTensors(call.inputs);
      throw refused(isDecoupled(call));
    }
    return await serving.submit(request, newRecord(request.receivedNs), refused);
  }

  async stream(call: ModelCall, sink: AnswerSink): Promise<void> {
    let begun: Begun;
    try {
      begun = this.#begin(call);
    } catch (error) {
      return sink.respond(InferenceError.from(error), true, () => {});
    }
    const { serving, request } = begun;
    using _held = serving.hold();
    const refused = (error: InferenceError) => calledInVain(call, error);
    const record = newRecord(request.receivedNs);
    if (serving.config.decoupled) return await serving.submit({ ...request, answers: sink }, record, refused);
    const outcome = await serving
      .submit(request, record, refused)
      .catch((error: unknown) => InferenceError.from(error));
    sink.respond(outcome, true, () => {});
  }

  /** Finds the called version. When there is none, or it must not be called, releases the inputs and throws. */
  #begin(call: ModelCall): Begun {
    try {
      const serving = this.#lookUp(call);
      const { clock } = this.#parts;
      const own = deadlineFromNow(clock, call.queueTimeoutUs);
      const deadlineNs = Math.min(own, call.caller?.deadlineNs ?? own);
      const caller = call.caller === null ? null : { execution: call.caller };
      const more = {
        namespace: this.#namespace,
        priority: 0,
        receivedNs: clock.monotonicNs(),
        deadlineNs,
        executionMsMax: call.caller?.executionMsMax ?? null,
      };
      return { serving, request: { ...call, ...more, caller } };
    } catch (error) {
      releaseTensors(call.inputs);
      throw error;
    }
  }

  #lookUp(call: ModelCall): ServingVersion {
    const { modelName, modelVersion, caller } = call;
    if (caller !== null && caller.depth > depthMax)
      throw calledInVain(
        call,
        new InferenceError("UNAVAILABLE", `models call each other more than ${depthMax} levels deep`),
      );
    const entry = this.#parts.table.entry(this.#namespace, modelName);
    // A namespace that closes waits for running executions, which may still call its other models, but not for threads outside of any
    // execution.
    const isRefused = caller === null && this.#parts.isClosing(this.#namespace);
    if (entry === undefined || isRefused) throw calledInVain(call, notReady(modelName));
    try {
      return entry.lookup(modelVersion);
    } catch (error) {
      throw calledInVain(call, notReady(modelName, error));
    }
  }

  /** A model that is itself being loaded does not wait for another load, which may wait for this one. */
  async load(modelName: string, override: LoadOverride | null, signal: AbortSignal): Promise<void> {
    const entry = this.#parts.table.entry(this.#namespace, modelName);
    if (!this.#isLoaded && entry?.isBusy === true)
      throw new InferenceError("UNAVAILABLE", `failed to load '${modelName}': it is being loaded or unloaded`);
    await this.#parts.load(this.#namespace, modelName, override, signal);
  }

  async unload(modelName: string, unloadDependents: boolean): Promise<void> {
    await this.#parts.unload(this.#namespace, modelName, unloadDependents);
  }

  isReady(modelName: string, modelVersion: string): boolean {
    if (modelVersion !== "" && !/^(-1|\d{1,15})$/.test(modelVersion))
      throw new InferenceError(
        "INVALID_ARG",
        `failed to get model version from specified version string '${modelVersion}': expected a number`,
      );
    return readyVersion(this.#parts.table.entry(this.#namespace, modelName), modelVersion);
  }
}

function readyVersion(entry: ModelEntry | undefined, modelVersion: string): boolean {
  if (entry === undefined) return false;
  try {
    return entry.lookup(modelVersion).health.unhealthy === null;
  } catch (error) {
    if (error instanceof InferenceError) return false;
    throw error;
  }
}

/** Returns Triton's text for a call that did not reach an execution. */
function calledInVain({ modelName }: ModelCall, error: InferenceError): InferenceError {
  const text = `Model ${modelName} - Error when running inference: ${error.message}`;
  return new InferenceError(error.code, text, { cause: error, reason: error.reason });
}

function notReady(modelName: string, cause?: unknown): InferenceError {
  const text = `Failed for execute the inference request. Model '${modelName}' is not ready.`;
  return new InferenceError("UNAVAILABLE", text, { cause });
}

function isDecoupled({ modelName }: ModelCall): InferenceError {
  return new InferenceError(
    "UNSUPPORTED",
    `Model ${modelName} is using the decoupled. The current BLS request call doesn't support models using the decoupled ` +
      "transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models.'",
  );
}
