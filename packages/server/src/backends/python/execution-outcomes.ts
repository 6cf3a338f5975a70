import { InferenceError } from "@galatea/base";
import {
  DeferredResponses,
  type Execution,
  type Outcome,
  type Released,
  releaseResponse,
} from "../../inference/index.ts";
import type { WireResult } from "./wire.ts";

/** Releases the tensors of all responses of an execution that is not returned to its caller. */
export function releaseOutcomes(outcomes: readonly Released[]): void {
  for (const outcome of outcomes)
    if (!(outcome instanceof InferenceError || outcome instanceof DeferredResponses)) releaseResponse(outcome);
}

/** Returns an execution with the durations that the worker has measured. */
export function measuredExecution(result: WireResult, outcomes: readonly Released[]): Execution {
  const { inputNs: computeInputNs, inferNs: computeInferNs, outputNs: computeOutputNs } = result;
  return { outcomes, computeInputNs, computeInferNs, computeOutputNs };
}

/** Returns an execution that has failed with the same error for each request. */
export function failedExecution(requestCount: number, error: InferenceError): Execution {
  return { outcomes: repeatOutcome(requestCount, error), computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 };
}

/** Returns the same outcome for each request. */
export function repeatOutcome(requestCount: number, outcome: Outcome): Outcome[] {
  return Array.from({ length: requestCount }, () => outcome);
}
