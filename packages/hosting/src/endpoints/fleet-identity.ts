import type { InstanceBudget } from "../definitions/index.ts";
import type { InvocationSource } from "../invocations/index.ts";
import type { NodeId } from "../nodes/index.ts";
import type { FleetOptions } from "./fleet-options.ts";
import type { PlacementKey } from "./model-rank.ts";

export interface FleetIdentity {
  readonly endpointName: string;
  readonly configName: string;
  /** Key that is unique among the fleets of the endpoint. The platform finds the fleet's instances by it after a restart. */
  readonly fleetKey: string;
  readonly region: string;
  readonly accountId: string;
  /** Secret key of the hash that places models on instances. */
  readonly placementKey: PlacementKey;
  /** Present for the copies of an inference component: the resources of each copy. */
  readonly component?: ComponentFleetIdentity;
}

export interface ComponentFleetIdentity {
  readonly name: string;
  readonly budget: InstanceBudget;
  readonly claimBytes: number;
  /** The node of the shared instances; null if the copies may run on any node. */
  readonly node: NodeId | null;
}

/** Returns the location of a fleet's container logs, for error messages. */
export function invocationSource(
  { endpointName, component, region, accountId }: FleetIdentity,
  { logsLink }: FleetOptions,
): Omit<InvocationSource, "containerName" | "logStreamArn"> {
  const logGroup =
    component === undefined
      ? `/aws/sagemaker/Endpoints/${endpointName}`
      : `/aws/sagemaker/InferenceComponents/${component.name}`;
  return { logGroup, region, accountId, logsLink };
}
