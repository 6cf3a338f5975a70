import type { InferenceError } from "@galatea/base";
import type { ModelTarget } from "../../engine/index.ts";
import type { Exchange } from "../http-listener/index.ts";

/** The route of a call: to the container's model, or to one of its archives. */
export type CallRoute = "invocations" | "invoke";

export interface OpenAiContainerCall {
  readonly target: ModelTarget;
  readonly path: string;
  readonly route: CallRoute;
}

/** The format of calls: Triton's, or that of a payload codec. */
export interface ContainerCalls {
  /** Responds in every outcome; throws only errors of the body itself (BodyError), to which the listener responds. */
  answer(exchange: Exchange, target: ModelTarget, route: CallRoute): Promise<void>;
  /** Responds to an invalid call without its model. */
  refuse(exchange: Exchange, error: InferenceError, route: CallRoute): void;
  /** Responds to a call of OpenAI's API, with a path such as `/v1/chat/completions`. */
  openAi(exchange: Exchange, call: OpenAiContainerCall): Promise<void>;
  /** Responds to GET /execution-parameters of a container with this model; null when there are none. */
  readonly executionParameters: ((exchange: Exchange, target: ModelTarget) => void | Promise<void>) | null;
}
