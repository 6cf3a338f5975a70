/**
 * Copies of requests and responses, made without delaying callers, for shadow variants and for data capture: one
 * bounded account of their bytes, copied bodies, the calls of shadow variants, and the files of captured data.
 */
export { MirroredCalls } from "./mirrored-calls.ts";
export { captureSettings } from "./capture-settings.ts";
export { mirrorDropReasons, type MirrorStatistics, type EndpointMirrorMemory } from "./mirror-memory.ts";
export { Mirrors, type MirroringLimits } from "./mirrors.ts";
export { ShadowCalls } from "./shadow-calls.ts";
