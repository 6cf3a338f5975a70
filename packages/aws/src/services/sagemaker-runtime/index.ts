/** SageMaker Runtime: InvokeEndpoint, a raw service because its traffic is bodies. */
export { openAiService, type OpenAiParts } from "./openai-service.ts";
export { isOpenAiUrl } from "./openai-routes.ts";
export { runtimeService, type RuntimeParts } from "./service.ts";
