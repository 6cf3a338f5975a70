/**
 * Endpoints as state machines, and their running instances: a fleet for each variant of a generation, a member for each
 * instance.
 */
export {
  beginChange,
  failureReason,
  footprintDifference,
  footprintBytes,
  footprintOf,
  groupKey,
  isProduction,
  isTransient,
  newEndpoint,
  newGeneration,
  noFootprint,
  stableGeneration,
  type Change,
  type EndpointRecord,
  type EndpointState,
  type Footprint,
  type Generation,
  type GroupSize,
  type PlannedConfig,
  type VariantGroup,
} from "./endpoint-record.ts";
export {
  mayStop,
  mayUpdate,
  moveEndpoint,
  nextChangeAction,
  plannedFootprint,
  stepOf,
  type EndpointEvent,
} from "./endpoint-state.ts";
export { stateChangeOf, type StateChange } from "./state-change.ts";
export { resizingSteps, stepsTo } from "./change-steps.ts";
export { checkDeployment, serverlessDeploymentRefusal } from "./check-deployment.ts";
export { FleetMember } from "./fleet-member.ts";
export { InstanceSampler } from "./instance-sampler.ts";
export { placementKeyOf, type PlacementKey } from "./model-rank.ts";
export { containerOwnBytes, plannedContainers } from "./planned-containers.ts";
export { failureSentence } from "./failure-sentence.ts";
export { Fleet, type FleetDependencies } from "./fleet.ts";
export type { FleetOptions } from "./fleet-options.ts";
export { RunningEndpoint, type RunningEndpointDependencies } from "./running-endpoint.ts";
