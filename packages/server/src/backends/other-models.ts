import type {
  AnswerSink,
  CallingExecution,
  InferenceResponse,
  ParameterValue,
  SequenceFlags,
} from "../inference/index.ts";
import type { Tensor } from "../tensor/index.ts";

/** What a model asks of another, of its own namespace: which that is it cannot say. */
export interface ModelCall {
  readonly id: string;
  readonly modelName: string;
  /** "" asks for the highest ready version. */
  readonly modelVersion: string;
  readonly inputs: readonly Tensor[];
  /** Null asks for all. */
  readonly requestedOutputs: readonly string[] | null;
  readonly parameters: ReadonlyMap<string, ParameterValue>;
  readonly sequence: SequenceFlags | null;
  readonly queueTimeoutUs: number;
  /** Aborts when nobody waits for the answer any more: with the caller's own request, at the latest. */
  readonly signal: AbortSignal;
  /** The execution that calls; null for a thread of the model's that belongs to none. */
  readonly caller: CallingExecution | null;
}

/**
 * The door from a model to the other models of its own namespace. A backend that runs code which calls models takes it from its
 * `LoadContext`; the engine implements it, and no call through it reaches another namespace.
 */
export interface OtherModels {
  /**
   * Takes the inputs over, in every outcome. The response is the caller's. Rejects with InferenceError: the code is what it would be for a
   * client; the text is Triton's for models, which names the model called where it did not come to an execution.
   */
  infer(call: ModelCall): Promise<InferenceResponse>;
  /** The same for any number of answers: those of a decoupled model, or the one of another. Resolves when the last has been given; never rejects. */
  stream(call: ModelCall, sink: AnswerSink): Promise<void>;
  load(
    modelName: string,
    override: { readonly configJson: string | null; readonly files: ReadonlyMap<string, Uint8Array> } | null,
    signal: AbortSignal,
  ): Promise<void>;
  unload(modelName: string, unloadDependents: boolean): Promise<void>;
  /** "" for any version. Throws INVALID_ARG for a version that is no number. */
  isReady(modelName: string, modelVersion: string): boolean;
}
