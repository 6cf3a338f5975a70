/**
 * SageMaker's control plane over `Hosting`: models, endpoint configurations, endpoints, tags, listings. The gateway has
 * already checked inputs against the published model; this module checks SageMaker's additional rules. A member that
 * would change the behaviour and is not implemented is rejected with an error that names it.
 */
export { sagemakerService } from "./service.ts";
