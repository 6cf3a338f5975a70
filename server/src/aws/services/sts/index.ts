/** STS: who is calling, and temporary credentials. `StsService.credential` belongs in the gateway's look-up of credentials. */
export { createStsService, type StsOptions, type StsService } from "./sts-service.ts";
