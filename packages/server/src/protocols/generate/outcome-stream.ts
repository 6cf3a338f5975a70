import { InferenceError } from "@galatea/base";
import type { ServedModel } from "../../engine/index.ts";
import type { InferenceRequest, Outcome } from "../../inference/index.ts";
import { ResponseIterator } from "../infer-http/index.ts";

/**
 * The responses to one request, in order, as they are produced; most models send one. The caller owns each response and may stop at any
 * time. Requesting the next response acknowledges the previous one.
 */
export type OutcomeStream = AsyncIterable<Outcome>;

export type SendRequest = (model: ServedModel, request: InferenceRequest) => OutcomeStream;

/** Sends a request to any model and returns its responses. Takes ownership of the request's tensors. */
export const streamOutcomes: SendRequest = (model, request) =>
  model.view.config.decoupled ? new ResponseIterator(model, request) : singleResponse(model, request);

/** Yields the only response of a model that is not decoupled. */
async function* singleResponse(model: ServedModel, request: InferenceRequest): OutcomeStream {
  try {
    yield await model.infer(request);
  } catch (error) {
    yield InferenceError.from(error);
  }
}
