import type {
  ResponseSink,
  CallingExecution,
  InferenceResponse,
  ParameterValue,
  SequenceFlags,
} from "../inference/index.ts";
import type { Tensor } from "../tensor/index.ts";

/** A call from a model to another model of the same namespace. */
export interface ModelCall {
  readonly id: string;
  readonly modelName: string;
  /** An empty string selects the highest ready version. */
  readonly modelVersion: string;
  readonly inputs: readonly Tensor[];
  /** Names of the requested outputs; null selects all. */
  readonly requestedOutputs: readonly string[] | null;
  readonly parameters: ReadonlyMap<string, ParameterValue>;
  readonly sequence: SequenceFlags | null;
  readonly queueTimeoutUs: number;
  /** Aborts when no caller waits for the response any more. This happens at the latest when the calling model's own request ends. */
  readonly signal: AbortSignal;
  /** The calling execution; null for a call from a thread that belongs to no execution. */
  readonly caller: CallingExecution | null;
}

/**
 * Calls the other models of a model's namespace (BLS). The engine implements it; backends get it from `LoadContext`. Other namespaces
 * cannot be called.
 */
export interface BlsClient {
  /**
   * Calls a model. Takes ownership of the inputs, even on failure; the caller owns the response. Rejects with an InferenceError, whose code
   * is for clients and whose text is Triton's text for models. The text names the called model if no execution was started.
   */
  infer(call: ModelCall): Promise<InferenceResponse>;
  /**
   * Calls a model and passes each of its responses to `sink`: any number from a decoupled model, one from another model. Resolves after the
   * last response; never rejects.
   */
  stream(call: ModelCall, sink: ResponseSink): Promise<void>;
  load(
    modelName: string,
    override: { readonly configJson: string | null; readonly files: ReadonlyMap<string, Uint8Array> } | null,
    signal: AbortSignal,
  ): Promise<void>;
  unload(modelName: string, unloadDependents: boolean): Promise<void>;
  /** Returns whether a version is ready; an empty string means any version. Throws INVALID_ARG for a version that is not a number. */
  isReady(modelName: string, modelVersion: string): boolean;
}
