import type { Clock } from "@galatea/base";
import type { InferenceRequest, InferenceResponse, RequestRecord, StreamedRequest } from "../inference/index.ts";

export interface SchedulerOptions {
  readonly clock: Clock;
  /**
   * The server's limit on waiting requests, which applies also if a queue policy has no limit. The count includes requests with pending
   * responses, and responses that wait for the responses of earlier requests. For an ensemble, it is the limit on requests in flight;
   * further requests are rejected with the error of a full queue.
   */
  readonly queueLengthMax: number;
}

/**
 * Runs the steps of an ensemble. `step` is the index of a step in the configuration. Each step is an ordinary request to its model: the
 * model takes ownership of the input tensors, and the caller owns the responses. The times of the step are written to `record`; the
 * ensemble adds them to the record of its own request.
 */
export interface StepModels {
  infer(step: number, request: InferenceRequest, record: RequestRecord): Promise<InferenceResponse>;
  /**
   * Runs a decoupled step. Responses go to the request's sink, which always receives a final one. Resolves after the final response, when
   * the step's execution has released the request. Never rejects.
   */
  stream(step: number, request: StreamedRequest, record: RequestRecord): Promise<void>;
}

export interface EnsembleOptions extends SchedulerOptions {
  /** Version of the ensemble, which its responses contain. */
  readonly modelVersion: string;
}
