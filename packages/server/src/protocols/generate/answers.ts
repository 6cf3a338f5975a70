import { InferenceError } from "@galatea/base";
import type { ServedModel } from "../../engine/index.ts";
import type { InferenceRequest, Outcome } from "../../inference/index.ts";
import { StreamedAnswers } from "../infer-http/index.ts";

/**
 * The responses to one request, in order, as they are produced; most models send one. The iterating caller owns each response, and may
 * stop at any time; the next one is requested when the previous one was sent.
 */
export type Answers = AsyncIterable<Outcome>;

export type AnswersOf = (model: ServedModel, request: InferenceRequest) => Answers;

/** Sends a request to any model and returns its responses; owns the request's tensors. */
export const answersOf: AnswersOf = (model, request) =>
  model.view.config.decoupled ? new StreamedAnswers(model, request) : onlyAnswerOf(model, request);

/** Yields the response of a model that sends one to each request. */
async function* onlyAnswerOf(model: ServedModel, request: InferenceRequest): Answers {
  try {
    yield await model.infer(request);
  } catch (error) {
    yield InferenceError.from(error);
  }
}
