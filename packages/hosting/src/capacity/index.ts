/** Quotas of the account, reservations on the nodes, instances that drain, and memory that models were measured to need. */
export { ModelMemories } from "./model-memories.ts";
export { type HostingLimits, hostingLimits, Reservations, WriteReservation } from "./reservations.ts";
export { DrainLimiter } from "./drain-limiter.ts";
