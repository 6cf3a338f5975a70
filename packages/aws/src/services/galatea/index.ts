/** What the platform can do beside SageMaker's API: stop and start endpoints, and tell of their state changes. */
export { galateaService } from "./service.ts";
