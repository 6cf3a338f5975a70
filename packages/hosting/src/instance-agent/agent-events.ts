import type { ModelsMemory, ModelState } from "../model-cache/index.ts";
import type { MissingIsolation } from "../instances/index.ts";
import type { AgentInstanceSpec } from "./agent-spec.ts";

/** The state of a container, for routing and for errors. */
export interface ContainerHealth {
  /** `adopting`: the agent looks for a container of a previous run and takes it over; its models are not known yet. */
  readonly at: "adopting" | "starting" | "in-service" | "waiting" | "stopped";
  /** The latest reason why the container was not in service. */
  readonly failure: string;
  /** The last output before its latest failed start. */
  readonly lastLines: readonly string[];
  /** True if its starts keep failing: requests are rejected instead of waiting for the next start. */
  readonly isFailing: boolean;
  /** True if a connection broke and no response has arrived since: the container may be ending. */
  readonly isUnhealthy: boolean;
  /** The kinds of isolation between tenants that it cannot apply, with reasons; null where it reports none. */
  readonly unconfined: MissingIsolation | null;
}

export type ModelTiming = "downloaded" | "loaded" | "unloaded";

/** A change of one container. `model-timed` reports one duration for metrics; `line` is a line of output. */
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
  /** `position`: index of the container in the instance, from 0. */
  | (ContainerChange & { readonly position: number })
  /** The instance has ended. `error`: why its first start failed; null for a deleted instance. */
  | { readonly kind: "ended"; readonly error: Error | null };

/** An event in the stream of an agent. `seq` increases by one with each event. */
export type AgentEvent = InstanceEvent & { readonly seq: number; readonly instanceId: string };

/** Replaces events that a slow reader missed: the reader has to read the whole state again. */
export interface LostEvents {
  readonly kind: "lost";
  /** The number of the last missed event. */
  readonly seq: number;
}

/** A container of a listed instance. */
export interface ListedContainer {
  readonly health: ContainerHealth;
  readonly models: readonly ModelState[];
  readonly memory: ModelsMemory | null;
}

export interface ListedInstance {
  /** The spec of its `put`. */
  readonly spec: AgentInstanceSpec;
  readonly containers: readonly ListedContainer[];
}
