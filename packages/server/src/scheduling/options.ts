import type { Clock } from "@galatea/base";
import type { InferenceRequest, InferenceResponse, RequestRecord, StreamedRequest } from "../inference/index.ts";

export interface SchedulerOptions {
  readonly clock: Clock;
  /**
   * The server's own bound on waiting requests, in force also where a queue policy gives no bound.
   * For an ensemble: on requests in flight, refused beyond it as by a full queue.
   */
  readonly queueLengthMax: number;
}

/**
 * What the steps of an ensemble run on, by their places in its configuration. Each step is an ordinary request to its model, whose input
 * tensors are taken over in every outcome, as the engine's `infer` does; responses are the caller's. The step's times are
 * written to `record`, and the ensemble adds them to its own.
 */
export interface StepModels {
  infer(step: number, request: InferenceRequest, record: RequestRecord): Promise<InferenceResponse>;
  /**
   * For a decoupled step: its answers go to the request's sink, the last one in every outcome. Resolves when the request has been released,
   * too; never rejects.
   */
  stream(step: number, request: StreamedRequest, record: RequestRecord): Promise<void>;
}

export interface EnsembleOptions extends SchedulerOptions {
  /** The ensemble's own version, for its responses. */
  readonly modelVersion: string;
}
