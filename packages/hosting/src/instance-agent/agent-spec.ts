import type { ModelCacheLimits } from "../model-cache/index.ts";
import type { InstanceBudget } from "../definitions/index.ts";
import type { ContainerSpec, InstanceLimits, InstanceOwner } from "../instances/index.ts";

/** The model cache of a multi-model container. */
export interface ModelCacheSpec {
  readonly limits: ModelCacheLimits;
  /** Bytes of memory that are always available for the container's models (GALATEA_MODEL_MEMORY_BYTES). */
  readonly guaranteedBytes: number;
}

/** The specification of one container, as JSON-compatible data. */
export interface AgentContainerSpec extends Omit<ContainerSpec, "output"> {
  /** Name of the container in error messages. */
  readonly name: string;
  /** Null for a container whose model is downloaded before it starts. */
  readonly cache: ModelCacheSpec | null;
}

/** The specification of an instance, as JSON-compatible data. The agent's state contains it unchanged. */
export interface AgentInstanceSpec {
  /** Contains only letters, digits and dashes. */
  readonly id: string;
  /** Null for an instance that a later run of the platform stops instead of adopting. */
  readonly owner: InstanceOwner | null;
  /** Instance type of the variant, such as `ml.m5.large`; absent for a serverless variant. */
  readonly instanceType?: string;
  /** The resources that all containers share. */
  readonly budget: InstanceBudget;
  readonly containers: readonly [AgentContainerSpec, ...AgentContainerSpec[]];
  /** Bytes of node memory that are reserved for the instance, including the guarantees of its model caches. */
  readonly reservedBytes: number;
  readonly limits: InstanceLimits;
  /** Maximum milliseconds that a request waits for a restarting container. */
  readonly restartWaitMsMax: number;
}

/** The handling of a failed first start: `delete` removes the instance, `retry` repeats starts until one succeeds. */
export type OnStartFailure = "delete" | "retry";
