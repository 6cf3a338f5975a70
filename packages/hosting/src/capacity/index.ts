/** Limits of the account and of the machine: quotas with reservations, instances that drain, and memory that models were measured to need. */
export { ModelMemories } from "./model-memories.ts";
export { Quotas, WriteReservation, type HostingLimits, hostingLimits } from "./quotas.ts";
export { Retirements } from "./retirements.ts";
