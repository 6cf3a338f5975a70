/**
 * SageMaker's control plane over `Hosting`: models, endpoint configurations, endpoints, tags, listings. Inputs are
 * already checked against the published model; the checks here are SageMaker's further ones. Members that would change
 * the behaviour and are not implemented are rejected by name.
 */
export { sagemakerService } from "./service.ts";
