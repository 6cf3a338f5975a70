/** Endpoints as state machines, and what runs for one: a fleet for each variant, a member for each instance. */
export {
  failureReason,
  instanceCountOf,
  isTransient,
  moveEndpoint,
  plannedInstanceCount,
  type EndpointEvent,
  type EndpointRecord,
  type EndpointState,
} from "./endpoint-state.ts";
export { FleetMember } from "./fleet-member.ts";
export { InstanceSampler } from "./instance-sampler.ts";
export { plannedContainers } from "./planned-containers.ts";
export type { FleetOptions } from "./fleet-options.ts";
export { containerModels } from "./container-models.ts";
export { RunningEndpoint } from "./running-endpoint.ts";
