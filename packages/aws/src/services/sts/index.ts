/** STS: who is calling, and temporary credentials. `StsSessions.credential` belongs in the gateway's look-up of credentials. */
export { stsService } from "./service.ts";
export { StsSessions, type StsSessionsOptions } from "./sessions.ts";
