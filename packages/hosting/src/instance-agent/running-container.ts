import type { Clock, Logger } from "@galatea/base";
import { ModelCache, type ModelTrees } from "../model-cache/index.ts";
import type { NodeDescription, NodeMemory } from "../nodes/index.ts";
import { InstanceContainer, type ContainerSlot, type InstanceUsage } from "../instances/index.ts";
import type { ContainerChange, ContainerHealth, ListedContainer } from "./agent-events.ts";
import type { AgentContainerSpec, AgentInstanceSpec, ModelCacheSpec } from "./agent-spec.ts";

/** Dependencies that all containers of an agent share. */
export interface RunningDependencies {
  readonly node: NodeDescription;
  /** The memory of the node that model caches share. */
  readonly memory: NodeMemory;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface RunningContainerOptions extends RunningDependencies {
  readonly instance: AgentInstanceSpec;
  readonly spec: AgentContainerSpec;
  readonly slot: ContainerSlot;
  readonly emit: (change: ContainerChange) => void;
}

/** One container of an instance on this node: keeps it in service, and keeps the model cache of a multi-model container. */
export class RunningContainer implements AsyncDisposable {
  readonly container: InstanceContainer;
  readonly models: ModelCache | null;
  readonly clock: Clock;
  readonly restartWaitMsMax: number;
  readonly #options: RunningContainerOptions;

  constructor(options: RunningContainerOptions) {
    this.#options = options;
    const { instance, spec, slot, clock, logger } = options;
    this.clock = clock;
    this.restartWaitMsMax = instance.restartWaitMsMax;
    this.container = new InstanceContainer({
      id: instance.id,
      name: spec.name,
      slot,
      limits: instance.limits,
      clock,
      logger,
      prepare: async (signal) => {
        await slot.prepare(signal);
        await this.models?.adopt([]);
      },
      takeOver: async (client, signal) => {
        if (this.models !== null) await this.models.adopt(await client.models(signal));
      },
      onLost: () => this.models?.containerLost(),
      onChanged: () => this.#reportHealth(),
    });
    const { trees } = slot;
    this.models = trees === null || spec.cache === null ? null : this.#openModels(trees, spec.cache);
  }

  get name(): string {
    return this.#options.spec.name;
  }

  get listed(): ListedContainer {
    const { models } = this;
    return { health: this.#health, models: models?.states() ?? [], memory: models?.memory ?? null };
  }

  async usage(): Promise<InstanceUsage | null> {
    return await this.container.usage();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.models?.[Symbol.asyncDispose]();
    await this.container[Symbol.asyncDispose]();
  }

  get #health(): ContainerHealth {
    const { state, client, lastFailure: failure, lastLines, isFailing } = this.container;
    return {
      at: state.at,
      failure,
      lastLines,
      isFailing,
      isSuspect: client?.isSuspect ?? false,
      unconfined: client?.unconfined ?? null,
    };
  }

  #reportHealth(): void {
    this.#options.emit({ kind: "health", health: this.#health });
  }

  #openModels(trees: ModelTrees, { limits, promisedBytes }: ModelCacheSpec): ModelCache {
    const { memory, clock, logger, emit } = this.#options;
    const timed = (what: "downloaded" | "loaded" | "unloaded") => (target: string, durationUs: number) =>
      emit({ kind: "model-timed", what, target, durationUs });
    return new ModelCache({
      trees,
      limits,
      container: (signal) => this.container.trustedClient(signal),
      observer: {
        downloaded: timed("downloaded"),
        loaded: timed("loaded"),
        unloaded: timed("unloaded"),
        changed: (model) => emit({ kind: "model", model }),
        used: (id, pinCount, usedNs) => emit({ kind: "model-used", id, pinCount, usedNs }),
        outdated: (target) => emit({ kind: "outdated", target }),
      },
      joinMemory: (holder) => memory.join(holder, promisedBytes),
      clock,
      logger,
    });
  }
}
