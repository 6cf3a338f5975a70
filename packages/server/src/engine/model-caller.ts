import { InferenceError, type Clock } from "@galatea/base";
import type { ModelCall, BlsClient } from "../backends/index.ts";
import {
  deadlineFromNow,
  newRecord,
  type ResponseSink,
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
  /** Returns whether the namespace is closing: running requests complete, new ones are rejected. */
  readonly isClosing: (namespace: string) => boolean;
}

/** A call of a model version that has started. */
interface StartedCall {
  readonly serving: ServingVersion;
  readonly request: InferenceRequest;
}

/** Maximum depth of nested calls. Each level has its own execution, and memory for its tensors. */
const depthMax = 32;

/** Runs the calls that one loaded model makes to other models of its namespace (BLS). */
export class ModelCaller implements BlsClient {
  readonly #dependencies: ModelCallerDependencies;
  readonly #namespace: string;
  #isLoaded = false;

  constructor(dependencies: ModelCallerDependencies, namespace: string) {
    this.#dependencies = dependencies;
    this.#namespace = namespace;
  }

  /** Marks the calling model's own load as completed. */
  loaded(): void {
    this.#isLoaded = true;
  }

  async infer(call: ModelCall): Promise<InferenceResponse> {
    const { serving, request } = this.#startCall(call);
    using _held = serving.lease();
    const refused = (error: InferenceError) => callFailure(call, error);
    if (serving.config.decoupled) {
      releaseTensors(call.inputs);
      throw refused(isDecoupled(call));
    }
    return await serving.submit(request, newRecord(request.receivedNs), refused);
  }

  async stream(call: ModelCall, sink: ResponseSink): Promise<void> {
    let started: StartedCall;
    try {
      started = this.#startCall(call);
    } catch (error) {
      return sink.respond(InferenceError.from(error), true, () => {});
    }
    const { serving, request } = started;
    using _held = serving.lease();
    const refused = (error: InferenceError) => callFailure(call, error);
    const record = newRecord(request.receivedNs);
    if (serving.config.decoupled) return await serving.submit({ ...request, responseSink: sink }, record, refused);
    const outcome = await serving
      .submit(request, record, refused)
      .catch((error: unknown) => InferenceError.from(error));
    sink.respond(outcome, true, () => {});
  }

  /** Finds the called version. Releases the inputs and throws when there is none, or when the call is not allowed. */
  #startCall(call: ModelCall): StartedCall {
    try {
      const serving = this.#lookUp(call);
      const { clock } = this.#dependencies;
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
      throw callFailure(
        call,
        new InferenceError("UNAVAILABLE", `models call each other more than ${depthMax} levels deep`),
      );
    const entry = this.#dependencies.table.entry(this.#namespace, modelName);
    // While a namespace closes, running executions may still call its models. Threads that a model runs outside of any execution may not.
    const isRefused = caller === null && this.#dependencies.isClosing(this.#namespace);
    if (entry === undefined || isRefused) throw callFailure(call, notReady(modelName));
    try {
      return entry.lookup(modelVersion);
    } catch (error) {
      throw callFailure(call, notReady(modelName, error));
    }
  }

  /**
   * Loads a model. Rejects with UNAVAILABLE if the calling model is still loading and the other model is being loaded or unloaded: both
   * loads could wait for each other.
   */
  async load(modelName: string, override: LoadOverride | null, signal: AbortSignal): Promise<void> {
    const entry = this.#dependencies.table.entry(this.#namespace, modelName);
    if (!this.#isLoaded && entry?.isBusy === true)
      throw new InferenceError("UNAVAILABLE", `failed to load '${modelName}': it is being loaded or unloaded`);
    await this.#dependencies.load(this.#namespace, modelName, override, signal);
  }

  async unload(modelName: string, unloadDependents: boolean): Promise<void> {
    await this.#dependencies.unload(this.#namespace, modelName, unloadDependents);
  }

  isReady(modelName: string, modelVersion: string): boolean {
    if (modelVersion !== "" && !/^(-1|\d{1,15})$/.test(modelVersion))
      throw new InferenceError(
        "INVALID_ARG",
        `failed to get model version from specified version string '${modelVersion}': expected a number`,
      );
    return readyVersion(this.#dependencies.table.entry(this.#namespace, modelName), modelVersion);
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

/** Returns Triton's text for a call that failed before it was executed. */
function callFailure({ modelName }: ModelCall, error: InferenceError): InferenceError {
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
