/** SageMaker Runtime: InvokeEndpoint, a raw service because its traffic is bodies. */
export { openAiService } from "./openai-service.ts";
export { isOpenAiUrl } from "./openai-routes.ts";
export { runtimeService } from "./service.ts";
