import type { Clock } from "../base/index.ts";
import type { InferenceRequest, InferenceResponse, RequestRecord } from "../inference/index.ts";

export interface SchedulerOptions {
  readonly clock: Clock;
  /**
   * The server's own bound on waiting requests, in force also where a queue policy gives no bound.
   * For an ensemble: on requests in flight, refused beyond it as by a full queue.
   */
  readonly queueLengthMax: number;
}

/** What a step of an ensemble gave: its response, and its times, which the ensemble adds up. */
export interface StepResult {
  readonly response: InferenceResponse;
  readonly record: RequestRecord;
}

/**
 * Runs one step of an ensemble as an ordinary request to its model. Takes the request's input tensors over in every outcome,
 * as the engine's `infer` does; the response is the caller's. `modelVersion` -1 asks for the latest (`request.modelVersion`
 * says the same in its own spelling); `signal` is `request.signal`.
 */
export type RunStep = (
  modelName: string,
  modelVersion: number,
  request: InferenceRequest,
  signal: AbortSignal | null,
) => Promise<StepResult>;

export interface EnsembleOptions extends SchedulerOptions {
  /** The ensemble's own version, for its responses. */
  readonly modelVersion: string;
}
