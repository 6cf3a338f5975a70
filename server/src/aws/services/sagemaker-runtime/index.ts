/** SageMaker Runtime: InvokeEndpoint, a raw service because its traffic is bodies. */
export { runtimeService, type RuntimeParts } from "./service.ts";
