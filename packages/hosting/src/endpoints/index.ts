/**
 * Endpoints as state machines, and their running instances. Each variant of a generation has a fleet, which contains the
 * variant's instances.
 */
export {
  newEndpointChange,
  failureReason,
  footprintDifference,
  footprintBytes,
  groupsFootprint,
  groupKey,
  isProductionGroup,
  isTransientState,
  routingTable,
  newEndpointRecord,
  newGeneration,
  emptyFootprint,
  stableGeneration,
  type EndpointChange,
  type EndpointRecord,
  type EndpointState,
  type Footprint,
  type Generation,
  type GroupSize,
  type PlannedConfig,
  type VariantGroup,
} from "./endpoint-record.ts";
export {
  canStopEndpoint,
  canUpdateEndpoint,
  applyEndpointEvent,
  nextChangeAction,
  peakFootprint,
  currentStep,
  type EndpointEvent,
} from "./endpoint-state.ts";
export { detectStateChange, type StateChange } from "./state-change.ts";
export { resizeSteps, stepsToGeneration } from "./change-steps.ts";
export { deploymentConfigError, serverlessDeploymentError } from "./check-deployment.ts";
export { InstanceRouting } from "./instance-routing.ts";
export { ModelRouter } from "./model-router.ts";
export { RoutedInstance } from "./routed-instance.ts";
export { FleetRouting } from "./fleet-routing.ts";
export { VariantInstance } from "./variant-instance.ts";
export { InstanceSampler } from "./instance-sampler.ts";
export { derivePlacementKey, type PlacementKey } from "./model-rank.ts";
export { containerBaseBytes, namedContainers, planContainers } from "./planned-containers.ts";
export { instanceFailureReason } from "./instance-failure-reason.ts";
export { Fleet, type FleetDependencies } from "./fleet.ts";
export type { FleetOptions } from "./fleet-options.ts";
export { RunningEndpoint, type RunningEndpointDependencies } from "./running-endpoint.ts";
