import type { ModelCacheLimits } from "../model-cache/index.ts";
import type { InstanceBudget } from "../definitions/index.ts";
import type { ContainerSpec, InstanceLimits, InstanceOwner } from "../instances/index.ts";

/** The models of a container that has many. */
export interface ModelCacheSpec {
  /** The prefix below which their archives are. */
  readonly modelDataUrl: string;
  readonly limits: ModelCacheLimits;
  /** Memory that they may have whatever else is on the node. */
  readonly promisedBytes: number;
}

/** One container of an instance, in plain data. */
export interface AgentContainerSpec extends Omit<ContainerSpec, "output"> {
  /** As errors call it. */
  readonly name: string;
  /** Null where its models are there before it starts. */
  readonly cache: ModelCacheSpec | null;
}

/** What an instance is put with: plain data, which the agent lists as it was given. */
export interface AgentInstanceSpec {
  /** Of letters, digits and dashes. */
  readonly id: string;
  /** Null for one that no later life of the platform takes over. */
  readonly owner: InstanceOwner | null;
  /** What all containers may use together. */
  readonly budget: InstanceBudget;
  readonly containers: readonly [AgentContainerSpec, ...AgentContainerSpec[]];
  readonly limits: InstanceLimits;
  /** How long a request waits for a container that is started again. */
  readonly restartWaitMsMax: number;
}

/** `delete`: an instance whose first start fails is deleted. `retry`: its starts are tried until one succeeds. */
export type OnStartFailure = "delete" | "retry";
