import type { InferenceError } from "../base/index.ts";
import { releaseTensors, type Tensor } from "../tensor/index.ts";
import type { ParameterValue } from "./parameters.ts";

/**
 * The answer to one request. The receiver owns the output tensors and calls `releaseResponse` once their bytes have left
 * (for a socket: in the write's callback).
 */
export interface InferenceResponse {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly outputs: readonly Tensor[];
  readonly parameters: ReadonlyMap<string, ParameterValue>;
}

/** What became of one request of a batch. */
export type Outcome = InferenceResponse | InferenceError;

export function releaseResponse(response: InferenceResponse): void {
  releaseTensors(response.outputs);
}
