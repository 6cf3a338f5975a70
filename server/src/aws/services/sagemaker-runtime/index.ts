/** SageMaker Runtime: InvokeEndpoint, as a raw service because its traffic is bodies. */
export { createRuntimeService, type RuntimeOptions } from "./invoke-endpoint.ts";
