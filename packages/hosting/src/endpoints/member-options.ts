import type { InstanceBudget, VariantPlan } from "../definitions/index.ts";
import type { InvocationSource } from "../invocations/index.ts";
import type { VariantMetrics } from "../series/index.ts";
import type { NodeReservation } from "../nodes/index.ts";
import type { FleetOptions } from "./fleet-options.ts";
import type { PlannedContainer } from "./planned-containers.ts";

/** The options that the containers of one instance share. */
export interface MemberOptions {
  readonly id: string;
  /** Number among the instances of its fleet. */
  readonly ordinal: number;
  /** Its fleet, by which the platform's next run adopts the instance; null for instances that are not adopted. */
  readonly fleetKey: string | null;
  /**
   * The endpoint or job that the instance is started for: shown in lists of processes, and the owner of its
   * credentials.
   */
  readonly ownerName: string;
  /** Log stream of a single container; with several, a container's name is appended. */
  readonly logStream: string;
  readonly plan: VariantPlan;
  /** Its reservation on its node, disposed when the instance ends. */
  readonly placed: NodeReservation;
  readonly budget: InstanceBudget;
  readonly containers: readonly PlannedContainer[];
  readonly fleet: FleetOptions;
  readonly metrics: VariantMetrics;
  readonly place: Omit<InvocationSource, "containerName" | "logStreamArn">;
  /** Called when a multi-model container finds another object for a model than before, or none. */
  readonly modelOutdated: (containerName: string, target: string) => void;
}
