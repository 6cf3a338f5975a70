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
 * The models of an ensemble's steps, by position in its configuration. Each step is an ordinary request to its model, which owns the
 * input tensors in every outcome, as in the engine's `infer`; the caller owns responses. The step's times are written to `record`, and
 * the ensemble adds them to its own.
 */
export interface StepModels {
  infer(step: number, request: InferenceRequest, record: RequestRecord): Promise<InferenceResponse>;
  /**
   * Runs a decoupled step: its responses go to the request's sink, the last one in every outcome. Resolves when the request has also been
   * released; never rejects.
   */
  stream(step: number, request: StreamedRequest, record: RequestRecord): Promise<void>;
}

export interface EnsembleOptions extends SchedulerOptions {
  /** The ensemble's own version, for its responses. */
  readonly modelVersion: string;
}
