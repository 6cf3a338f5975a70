import { InferenceError } from "@galatea/base";
import type { ServedModel } from "../../engine/index.ts";
import type { InferenceRequest, Outcome } from "../../inference/index.ts";
import { StreamedAnswers } from "../infer-http/index.ts";

/**
 * The answers to one request, in order, as they are made: one of most models. Whoever iterates owns each as it comes, and may stop
 * at any time; the next one is asked for when the one before has left.
 */
export type Answers = AsyncIterable<Outcome>;

export type AnswersOf = (model: ServedModel, request: InferenceRequest) => Answers;

/** The answers of any model; the request's tensors are taken over. */
export const answersOf: AnswersOf = (model, request) =>
  model.view.config.decoupled ? new StreamedAnswers(model, request) : onlyAnswerOf(model, request);

/** The answer of a model that gives one to each request. */
async function* onlyAnswerOf(model: ServedModel, request: InferenceRequest): Answers {
  try {
    yield await model.infer(request);
  } catch (error) {
    yield InferenceError.from(error);
  }
}
