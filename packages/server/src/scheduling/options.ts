import type { Clock } from "@galatea/base";
import type { AnswerSink, InferenceRequest, InferenceResponse, RequestRecord } from "../inference/index.ts";

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
 * What the steps of an ensemble run on, by their places in its configuration. Each step is an ordinary request to its model, whose input
 * tensors are taken over in every outcome, as the engine's `infer` does; responses are the caller's.
 */
export interface StepModels {
  infer(step: number, request: InferenceRequest): Promise<StepResult>;
  /**
   * For a decoupled step: its answers go to the sink, the last one in every outcome. Resolves with its times when it has been released, too;
   * never rejects.
   */
  stream(step: number, request: InferenceRequest, sink: AnswerSink): Promise<RequestRecord>;
}

export interface EnsembleOptions extends SchedulerOptions {
  /** The ensemble's own version, for its responses. */
  readonly modelVersion: string;
}
