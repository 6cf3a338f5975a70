/**
 * Operations that the platform offers in addition to SageMaker's API: stop and start endpoints, and list their state
 * changes.
 */
export { galateaService } from "./service.ts";
