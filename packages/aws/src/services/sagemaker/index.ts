/**
 * SageMaker's control plane over `Hosting`: models, endpoint configurations, endpoints, tags, listings. Inputs were checked against
 * SageMaker's published model before; what is checked here is what SageMaker itself checks beyond it. Members that would change what
 * runs and are not built are refused by name.
 */
export { sagemakerService } from "./service.ts";
