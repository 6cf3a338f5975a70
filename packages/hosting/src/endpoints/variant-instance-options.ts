import type { InstanceBudget, VariantPlan } from "../definitions/index.ts";
import type { InvocationSource } from "../invocations/index.ts";
import type { VariantMetrics } from "../series/index.ts";
import type { NodeReservation } from "../nodes/index.ts";
import type { FleetOptions } from "./fleet-options.ts";
import type { PlannedContainer } from "./planned-containers.ts";

/** The options of one instance of a variant. */
export interface VariantInstanceOptions {
  readonly id: string;
  /** Ordinal of the instance in its fleet, from 0. */
  readonly ordinal: number;
  /** Key of the instance's fleet, by which the platform adopts the instance after a restart; null for instances that are not adopted. */
  readonly fleetKey: string | null;
  /**
   * Name of the endpoint or transform job that the instance belongs to. It is shown in process lists and identifies the
   * instance's access keys.
   */
  readonly ownerName: string;
  /** Name of the instance's log stream. If the instance has several containers, each container's name is appended. */
  readonly logStream: string;
  readonly plan: VariantPlan;
  /** The reservation on the instance's node. The instance disposes it when it ends. */
  readonly placed: NodeReservation;
  readonly budget: InstanceBudget;
  readonly containers: readonly PlannedContainer[];
  readonly fleet: FleetOptions;
  readonly metrics: VariantMetrics;
  readonly place: Omit<InvocationSource, "containerName" | "logStreamArn">;
  /** Called when a multi-model container notices that the S3 object of a model was replaced or deleted. */
  readonly modelOutdated: (containerName: string, target: string) => void;
}
