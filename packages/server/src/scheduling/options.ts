import type { Clock } from "@galatea/base";
import type { InferenceRequest, InferenceResponse, RequestRecord, StreamedRequest } from "../inference/index.ts";

export interface SchedulerOptions {
  readonly clock: Clock;
  /**
   * The server's own limit on waiting requests, which applies also when a queue policy has none. Counts also requests with responses
   * still to come, and responses that wait for earlier ones. For an ensemble: the limit on requests in flight, over which requests are
   * rejected as by a full queue.
   */
  readonly queueLengthMax: number;
}

/**
 * Runs the steps of an ensemble; a step is identified by its index in the configuration. Each step is an ordinary request to its model: the
 * model takes ownership of the input tensors, the caller owns responses. The step's times are written to `record`; the ensemble adds them
 * to its own.
 */
export interface StepModels {
  infer(step: number, request: InferenceRequest, record: RequestRecord): Promise<InferenceResponse>;
  /**
   * Runs a decoupled step. Responses go to the request's sink, which always receives a final one. Resolves when the request was also
   * released; never rejects.
   */
  stream(step: number, request: StreamedRequest, record: RequestRecord): Promise<void>;
}

export interface EnsembleOptions extends SchedulerOptions {
  /** The ensemble's own version, for its responses. */
  readonly modelVersion: string;
}
