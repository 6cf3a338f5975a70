import type {
  AnswerSink,
  CallingExecution,
  InferenceResponse,
  ParameterValue,
  SequenceFlags,
} from "../inference/index.ts";
import type { Tensor } from "../tensor/index.ts";

/** A call from a model to another of its own namespace. The caller cannot name another namespace. */
export interface ModelCall {
  readonly id: string;
  readonly modelName: string;
  /** An empty string selects the highest ready version. */
  readonly modelVersion: string;
  readonly inputs: readonly Tensor[];
  /** Null selects all. */
  readonly requestedOutputs: readonly string[] | null;
  readonly parameters: ReadonlyMap<string, ParameterValue>;
  readonly sequence: SequenceFlags | null;
  readonly queueTimeoutUs: number;
  /** Aborts when nothing waits for the response any more, at the latest with the caller's own request. */
  readonly signal: AbortSignal;
  /** The calling execution; null for a thread of the model that belongs to none. */
  readonly caller: CallingExecution | null;
}

/**
 * A model's calls to the other models of its own namespace. A backend whose models call others takes it from its `LoadContext`; the
 * engine implements it, and no call reaches another namespace.
 */
export interface OtherModels {
  /**
   * Owns the inputs from the call on, in every outcome. The caller owns the response. Rejects with an InferenceError that has the code
   * for clients and Triton's text for models, which names the called model when no execution was started.
   */
  infer(call: ModelCall): Promise<InferenceResponse>;
  /**
   * Like `infer`, for any number of responses: those of a decoupled model, or the one of another model. Resolves after the last response;
   * never rejects.
   */
  stream(call: ModelCall, sink: AnswerSink): Promise<void>;
  load(
    modelName: string,
    override: { readonly configJson: string | null; readonly files: ReadonlyMap<string, Uint8Array> } | null,
    signal: AbortSignal,
  ): Promise<void>;
  unload(modelName: string, unloadDependents: boolean): Promise<void>;
  /** An empty string means any version. Throws INVALID_ARG for a version that is not a number. */
  isReady(modelName: string, modelVersion: string): boolean;
}
