/** Account quotas, memory reservations on nodes, limits of drains, and estimates of the memory that models need. */
export { ModelMemoryEstimates } from "./model-memories.ts";
export { type HostingLimits, hostingLimits, Reservations, WriteReservation } from "./reservations.ts";
export { DrainLimiter } from "./drain-limiter.ts";
