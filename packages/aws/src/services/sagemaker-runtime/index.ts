/** SageMaker Runtime and OpenAI's API in front of endpoints. Both are raw services, which stream bodies themselves. */
export { openAiService } from "./openai-service.ts";
export { isOpenAiUrl } from "./openai-routes.ts";
export { runtimeService } from "./service.ts";
