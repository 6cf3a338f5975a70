import type { AnswerSink } from "./answers.ts";
import type { Tensor } from "../tensor/index.ts";

/** A custom request or response parameter: string, bool, int64 (bigint) or double (number), as in the KServe protocol. */
export type ParameterValue = string | boolean | bigint | number;

export interface SequenceFlags {
  /** Correlation id: uint64 or string; 0n or "" means none. */
  readonly id: bigint | string;
  readonly start: boolean;
  readonly end: boolean;
}

/**
 * One inference, parsed. The request owns its input tensors; whoever infers takes it over in every outcome and releases
 * them when nobody (scheduler, worker, ensemble step) reads them any more. Backends that keep a block longer than the
 * request retain it themselves.
 */
export interface InferenceRequest {
  /** "" when the client gave none. */
  readonly id: string;
  /** "" is the server's own repositories; else the namespace a model archive was registered under. */
  readonly namespace: string;
  readonly modelName: string;
  /** "" asks for the highest ready version. */
  readonly modelVersion: string;
  readonly inputs: readonly Tensor[];
  /** Names of the wanted outputs; null asks for all. */
  readonly requestedOutputs: readonly string[] | null;
  readonly parameters: ReadonlyMap<string, ParameterValue>;
  readonly sequence: SequenceFlags | null;
  /** 0 asks for the model's default priority level. */
  readonly priority: number;
  /** Microseconds the request may wait in a queue; 0 for none of its own. */
  readonly queueTimeoutUs: number;
  /** Aborts when nobody waits for the answer any more. Null only where no one can leave (warm-up, tests). */
  readonly signal: AbortSignal | null;
  /** Where the answers of a decoupled model go; other models have one answer, which is the outcome. */
  readonly answers?: AnswerSink;
}

export const noParameters: ReadonlyMap<string, ParameterValue> = new Map();
