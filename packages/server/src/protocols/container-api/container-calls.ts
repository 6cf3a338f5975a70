import type { InferenceError } from "@galatea/base";
import type { ModelTarget } from "../../engine/index.ts";
import type { Exchange } from "../http-listener/index.ts";

/** Where a call came in: for the container's model, or for one of the archives that it holds. */
export type CallDoor = "invocations" | "invoke";

export interface OpenAiContainerCall {
  readonly target: ModelTarget;
  readonly path: string;
  readonly door: CallDoor;
}

/** How calls are understood and answered: Triton's language, or that of a payload codec. */
export interface ContainerCalls {
  /** Answers, in every outcome; only what is wrong with the body itself is thrown (BodyError), for the listener to answer. */
  answer(exchange: Exchange, target: ModelTarget, door: CallDoor): Promise<void>;
  /** Answers a call that is wrong before its model is asked. */
  refuse(exchange: Exchange, error: InferenceError, door: CallDoor): void;
  /** Answers a call of OpenAI's API, whose path is `/v1/chat/completions` or the like. */
  openAi(exchange: Exchange, call: OpenAiContainerCall): Promise<void>;
  /** Answers GET /execution-parameters of a container with this model; null where there is nothing to say. */
  readonly executionParameters: ((exchange: Exchange, target: ModelTarget) => void | Promise<void>) | null;
}
