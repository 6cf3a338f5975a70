/** Passes requests to the platform that has the records, for processes that serve its API without its records. */
export { LeaderProxy, type LeaderLocation } from "./leader-proxy.ts";
