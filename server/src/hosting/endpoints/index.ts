/** Endpoints as state machines, and what runs for one: a fleet for each variant, a member for each instance. */
export {
  failureReason,
  footprintOf,
  isTransient,
  moveEndpoint,
  noFootprint,
  plannedFootprint,
  type EndpointEvent,
  type EndpointRecord,
  type EndpointState,
  type Footprint,
} from "./endpoint-state.ts";
export { FleetMember } from "./fleet-member.ts";
export { InstanceSampler } from "./instance-sampler.ts";
export { plannedContainers } from "./planned-containers.ts";
export type { FleetOptions } from "./fleet-options.ts";
export { containerModels } from "./container-models.ts";
export { RunningEndpoint } from "./running-endpoint.ts";
