import type { ModelsMemory, ModelState } from "../model-cache/index.ts";
import type { MissingIsolation } from "../instances/index.ts";
import type { AgentInstanceSpec } from "./agent-spec.ts";

/** The state of a container, for request routing and error messages. */
export interface ContainerHealth {
  /** `adopting` means that the agent looks for a container of a previous run, whose loaded models are not known yet. */
  readonly at: "adopting" | "starting" | "in-service" | "waiting" | "stopped";
  /** The latest reason why the container was not in service. */
  readonly failure: string;
  /** Last lines of output before the container's latest failed start. */
  readonly lastLines: readonly string[];
  /** True if starts of the container keep failing. Requests are then rejected instead of waiting for the next start. */
  readonly isFailing: boolean;
  /** True if a connection broke and no later ping was successful: the container may be terminating. */
  readonly isUnhealthy: boolean;
  /** True if the agent shuts down, so that another instance must replace this one. */
  readonly isDraining: boolean;
  /** Kinds of isolation between tenants that the container cannot apply, with reasons; null if it reports none. */
  readonly unconfined: MissingIsolation | null;
}

export type ModelTiming = "downloaded" | "loaded" | "unloaded";

/** A change of one container. `model-timed` reports a duration for metrics, and `line` a line of output. */
type ContainerChange =
  | { readonly kind: "health"; readonly health: ContainerHealth }
  | { readonly kind: "model"; readonly model: ModelState }
  | { readonly kind: "model-used"; readonly id: string; readonly pinCount: number; readonly usedNs: number }
  | { readonly kind: "memory"; readonly memory: ModelsMemory }
  | {
      readonly kind: "model-timed";
      readonly what: ModelTiming;
      readonly target: string;
      readonly durationUs: number;
    }
  /** The object of a model was replaced or deleted. */
  | { readonly kind: "outdated"; readonly target: string }
  | { readonly kind: "line"; readonly text: string };

/** A change of an instance. */
export type InstanceEvent =
  /** A change of one container. `position` is the index of the container in the instance, from 0. */
  | (ContainerChange & { readonly position: number })
  /** The instance has ended. `error` is the failure of its first start; null if the instance was deleted. */
  | { readonly kind: "ended"; readonly error: Error | null };

/** An event of an agent. `seq` increases by one with each event of the agent. */
export type AgentEvent = InstanceEvent & { readonly seq: number; readonly instanceId: string };

/** A replacement for events that a slow reader missed. The reader must read the agent's state again. */
export interface LostEvents {
  readonly kind: "lost";
  /** Sequence number of the last missed event. */
  readonly seq: number;
}

/** A container in the agent's state. */
export interface ListedContainer {
  readonly health: ContainerHealth;
  readonly models: readonly ModelState[];
  readonly memory: ModelsMemory | null;
}

export interface ListedInstance {
  /** The spec with which the instance was started. */
  readonly spec: AgentInstanceSpec;
  readonly containers: readonly ListedContainer[];
}
