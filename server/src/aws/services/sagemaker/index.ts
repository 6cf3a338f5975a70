/**
 * SageMaker's control plane over `Hosting`: models, endpoint configurations, endpoints, tags, listings. Inputs were checked against
 * the service's model before; what is checked here is what the service checks itself. Members that would change what runs and are
 * not built are refused by name.
 */
export { createSageMakerOperations } from "./operations.ts";
