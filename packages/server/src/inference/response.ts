import type { InferenceError } from "@galatea/base";
import { releaseTensors, type Tensor } from "../tensor/index.ts";
import type { ParameterValue } from "./parameters.ts";

/** What is said of an answer beside its tensors: plain data, which another thread can be sent. */
export interface ResponseHead {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly parameters: ReadonlyMap<string, ParameterValue>;
}

/**
 * The answer to one request. The receiver owns the output tensors and calls `releaseResponse` once their bytes have left
 * (for a socket: in the write's callback).
 */
export interface InferenceResponse extends ResponseHead {
  readonly outputs: readonly Tensor[];
}

/** What became of one request of a batch. */
export type Outcome = InferenceResponse | InferenceError;

export function releaseResponse(response: InferenceResponse): void {
  releaseTensors(response.outputs);
}
