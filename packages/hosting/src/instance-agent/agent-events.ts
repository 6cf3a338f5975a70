import type { ModelsMemory, ModelState } from "../model-cache/index.ts";
import type { Unconfined } from "../instances/index.ts";
import type { AgentInstanceSpec } from "./agent-spec.ts";

/** A container as routing and errors know it. */
export interface ContainerHealth {
  readonly at: "starting" | "in-service" | "waiting" | "stopped";
  /** The newest reason why it was not in service. */
  readonly failure: string;
  /** What it printed before its last start failed. */
  readonly lastLines: readonly string[];
  /** Whether its starts keep failing: a request need not wait for the next. */
  readonly isFailing: boolean;
  /** Whether a connection broke and nothing has been answered since: it may be ending. */
  readonly isSuspect: boolean;
  /** Parts of its tenants' confinement that it lacks, with reasons; null where it does not say. */
  readonly unconfined: Unconfined | null;
}

export type ModelTiming = "downloaded" | "loaded" | "unloaded";

/** A change of one container. */
export type ContainerChange =
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
  /** The store has another object for a model than before, or none. */
  | { readonly kind: "outdated"; readonly target: string }
  | { readonly kind: "line"; readonly text: string };

/** What happened to an instance. */
export type InstanceEvent =
  /** `position`: among the containers of the instance, from 0. */
  | (ContainerChange & { readonly position: number })
  /** It is gone, with the failure of its first start or because it was deleted. */
  | { readonly kind: "ended"; readonly error: Error | null };

/** An event in the stream of an agent. `seq` counts up by one. */
export type AgentEvent = InstanceEvent & { readonly seq: number; readonly instanceId: string };

/** The reader was slower than the stream's bound: events are missing, and the state has to be read anew. */
export interface LostEvents {
  readonly kind: "lost";
  /** The events that follow come after this one. */
  readonly seq: number;
}

/** A container of a listed instance. */
export interface ListedContainer {
  readonly health: ContainerHealth;
  readonly models: readonly ModelState[];
  readonly memory: ModelsMemory | null;
}

export interface ListedInstance {
  /** As it was put. */
  readonly spec: AgentInstanceSpec;
  readonly containers: readonly ListedContainer[];
}
