import type { ModelCacheLimits } from "../model-cache/index.ts";
import type { InstanceBudget } from "../definitions/index.ts";
import type { ContainerSpec, InstanceLimits, InstanceOwner } from "../instances/index.ts";

/** The model cache of a multi-model container. */
export interface ModelCacheSpec {
  readonly limits: ModelCacheLimits;
  /** Guaranteed memory for its models, whatever else runs on the node (GALATEA_MODEL_MEMORY_BYTES). */
  readonly guaranteedBytes: number;
}

/** One container of an instance, as plain data. */
export interface AgentContainerSpec extends Omit<ContainerSpec, "output"> {
  /** The container's name in errors. */
  readonly name: string;
  /** Null for a container whose model is downloaded before it starts. */
  readonly cache: ModelCacheSpec | null;
}

/** The desired instance as plain data, which the agent's state lists unchanged. */
export interface AgentInstanceSpec {
  /** Letters, digits and dashes. */
  readonly id: string;
  /** Null for an instance that a later run of the platform ends instead of adopting. */
  readonly owner: InstanceOwner | null;
  /** The instance type of its variant, such as `ml.m5.large`; absent for a serverless variant. */
  readonly instanceType?: string;
  /** The resources that all containers share. */
  readonly budget: InstanceBudget;
  readonly containers: readonly [AgentContainerSpec, ...AgentContainerSpec[]];
  /** Bytes of the node's memory that are reserved for it, the guarantees of its model caches included. */
  readonly reservedBytes: number;
  readonly limits: InstanceLimits;
  /** Maximum wait of a request for a container that restarts. */
  readonly restartWaitMsMax: number;
}

/** `delete`: an instance whose first start fails is deleted. `retry`: starts are repeated until one succeeds. */
export type OnStartFailure = "delete" | "retry";
