import type { InferenceError } from "@galatea/base";
import { releaseTensors, type Tensor } from "../tensor/index.ts";
import type { ParameterValue } from "./parameters.ts";

/** The fields of a response except its tensors: plain data, which can be sent to another thread. */
export interface ResponseHead {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly parameters: ReadonlyMap<string, ParameterValue>;
}

/**
 * The response to one request. The receiver owns the output tensors and calls `releaseResponse` after their bytes were sent (for a socket:
 * in the callback of the write).
 */
export interface InferenceResponse extends ResponseHead {
  readonly outputs: readonly Tensor[];
}

/** The result of one request of a batch: a response or an error. */
export type Outcome = InferenceResponse | InferenceError;

export function releaseResponse(response: InferenceResponse): void {
  releaseTensors(response.outputs);
}
