/**
 * Copies of requests and responses, for shadow variants and for data capture. The copies never delay callers, and their
 * total memory is bounded.
 */
export { MirroredCalls } from "./mirrored-calls.ts";
export { captureSettings } from "./capture-settings.ts";
export { mirrorDropReasons, type MirrorStatistics, type EndpointMirrorMemory } from "./mirror-memory.ts";
export { Mirrors, type MirroringLimits } from "./mirrors.ts";
export { ShadowCalls } from "./shadow-calls.ts";
