import type { InferenceError } from "@galatea/base";
import type { ModelTarget } from "../../engine/index.ts";
import type { Exchange } from "../http-listener/index.ts";

/** The route of a call: `invocations` calls the container's own model, `invoke` one of its archives (multi-model). */
export type CallRoute = "invocations" | "invoke";

export interface OpenAiContainerCall {
  readonly target: ModelTarget;
  readonly path: string;
  readonly route: CallRoute;
}

/** Handles the calls of one body format: Triton's, or that of a payload codec. */
export interface ContainerCalls {
  /** Calls the model and sends its response or an error. Throws only BodyError, which the listener sends. */
  respond(exchange: Exchange, target: ModelTarget, route: CallRoute): Promise<void>;
  /** Sends an error without calling the model. */
  refuse(exchange: Exchange, error: InferenceError, route: CallRoute): void;
  /** Handles a call of the OpenAI API, whose path is for example `/v1/chat/completions`. */
  openAi(exchange: Exchange, call: OpenAiContainerCall): Promise<void>;
  /** Handles GET /execution-parameters for a container with this model; null when the container has no execution parameters. */
  readonly executionParameters: ((exchange: Exchange, target: ModelTarget) => void | Promise<void>) | null;
}
