import type { InstanceBudget, VariantPlan } from "../definitions/index.ts";
import type { InvocationPlace } from "../invocations/index.ts";
import type { VariantMetrics } from "../series/index.ts";
import type { NodeShare } from "../nodes/index.ts";
import type { FleetOptions } from "./fleet-options.ts";
import type { PlannedContainer } from "./planned-containers.ts";

/** What the containers of one instance share. */
export interface MemberOptions {
  readonly id: string;
  /** Its number among the instances of its fleet. */
  readonly ordinal: number;
  /** Its fleet, where the platform's next run is to find the instance there; null otherwise. */
  readonly fleetKey: string | null;
  /** The endpoint, or whatever else the instance is started for: in lists of processes, and for its credentials. */
  readonly ownerName: string;
  /** Of its only container; those of several have their names behind it. */
  readonly logStream: string;
  readonly plan: VariantPlan;
  /** Its place on its node, which ends with it. */
  readonly placed: NodeShare;
  readonly budget: InstanceBudget;
  readonly containers: readonly PlannedContainer[];
  readonly fleet: FleetOptions;
  readonly metrics: VariantMetrics;
  readonly place: Omit<InvocationPlace, "containerName" | "logStreamArn">;
  /** A multi-model container has seen another object for a model than before, or none. */
  readonly modelOutdated: (containerName: string, target: string) => void;
}
