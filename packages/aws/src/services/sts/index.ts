/**
 * STS: the caller's identity, and temporary credentials. The gateway's credential lookup must call
 * `StsSessions.credential`.
 */
export { stsService } from "./service.ts";
export { StsSessions, type StsSessionsOptions } from "./sessions.ts";
