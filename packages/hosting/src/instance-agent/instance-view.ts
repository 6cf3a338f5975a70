import { assert, ChangeNotifier, rejectOnAbort, unreachable } from "@galatea/base";
import { ModelsView } from "../model-cache/index.ts";
import { InstanceFailure, type MissingIsolation } from "../instances/index.ts";
import { ContainerConnectionLost } from "./agent-errors.ts";
import type { ContainerHealth, InstanceEvent, ListedInstance } from "./agent-events.ts";
import type { AgentContainerSpec, AgentInstanceSpec } from "./agent-spec.ts";

const notStarted: ContainerHealth = {
  at: "adopting",
  failure: "it has not been started yet",
  lastLines: [],
  isFailing: false,
  isUnhealthy: false,
  isDraining: false,
  unconfined: null,
};

/** The state of a container after its newest event. */
export class ContainerView {
  readonly name: string;
  /** View of the models of a multi-model container; null for other containers. */
  readonly models: ModelsView | null;
  readonly #changed = new ChangeNotifier();
  #health = notStarted;

  constructor({ name, cache }: AgentContainerSpec) {
    this.name = name;
    this.models = cache === null ? null : new ModelsView(cache.limits);
  }

  get health(): ContainerHealth {
    return this.#health;
  }

  get isInService(): boolean {
    return this.#health.at === "in-service";
  }

  /** True if the container is in service and no broken connection indicates that it is terminating. */
  get isHealthy(): boolean {
    return this.isInService && !this.#health.isUnhealthy;
  }

  /** True while it is unknown whether the container of a previous run is adopted, and which models it has loaded. */
  get isAdopting(): boolean {
    return this.#health.at === "adopting";
  }

  /** Resolves when it is known whether the container was adopted, and which models it has loaded. */
  async adopted(signal: AbortSignal): Promise<void> {
    while (this.isAdopting) await rejectOnAbort(this.#changed.nextChange(), signal);
  }

  get unconfined(): MissingIsolation | null {
    return this.isInService ? this.#health.unconfined : null;
  }

  /** Resolves when the container is in service. Rejects with InstanceFailure while its starts keep failing. */
  async ready(signal: AbortSignal): Promise<void> {
    for (;;) {
      const { at, failure, isFailing, lastLines } = this.#health;
      if (at === "in-service") return;
      const of = { containerName: this.name, lastLines };
      if (at === "stopped") throw new InstanceFailure("the instance is stopped", of);
      if (isFailing) throw new InstanceFailure(failure, of);
      await rejectOnAbort(this.#changed.nextChange(), signal);
    }
  }

  setHealth(health: ContainerHealth): void {
    this.#health = health;
    this.#changed.notify();
  }
}

/** The state of an instance after its newest event. All implementations of the agent use this class. */
export class InstanceView {
  readonly id: string;
  readonly containers: readonly ContainerView[];
  readonly #changed = new ChangeNotifier();
  #end: { readonly error: Error | null } | null = null;
  #isAway = false;

  constructor({ id, containers }: AgentInstanceSpec) {
    this.id = id;
    this.containers = containers.map((spec) => new ContainerView(spec));
  }

  get isInService(): boolean {
    return this.containers.every((container) => container.isInService);
  }

  /** Resets the end of the instance, because the instance is started again. */
  begin(): void {
    this.#end = null;
  }

  /** True if the instance has ended and was not started again. */
  get hasEnded(): boolean {
    return this.#end !== null;
  }

  get loadedCount(): number {
    return this.containers.reduce((sum, { models }) => sum + (models?.loadedCount ?? 0), 0);
  }

  /** True if the instance has ended, or if its agent has not responded for a long time. */
  get isLost(): boolean {
    return this.#isAway || this.#end !== null;
  }

  /** True if the agent shuts down and the instance still serves. */
  get isDraining(): boolean {
    return this.containers.some(({ health }) => health.isDraining);
  }

  /** Resolves when the instance is lost, or is draining. */
  async lostOrDraining(signal: AbortSignal): Promise<void> {
    while (!this.isLost && !this.isDraining) await rejectOnAbort(this.#changed.nextChange(), signal);
  }

  /** Marks the instance as lost until its state is restored. */
  markAway(): void {
    this.#isAway = true;
    this.#changed.notify();
  }

  /**
   * Resolves when all containers are in service. Rejects with the error that ended the instance, or if the agent does
   * not respond.
   */
  async started(signal: AbortSignal): Promise<void> {
    while (!this.isInService) {
      if (this.#end !== null) throw this.#end.error ?? new Error("the instance was deleted");
      if (this.#isAway) throw new ContainerConnectionLost("the instance agent does not respond");
      await rejectOnAbort(this.#changed.nextChange(), signal);
    }
  }

  apply(event: InstanceEvent): void {
    if (event.kind === "ended") return this.#ended(event.error);
    const container = this.containers[event.position];
    assert(container !== undefined, "an event is of a container of its instance");
    const { models } = container;
    switch (event.kind) {
      case "health":
        container.setHealth(event.health);
        this.#changed.notify();
        break;
      case "model":
        models?.changed(event.model);
        break;
      case "model-used":
        models?.used(event.id, event.pinCount, event.usedNs);
        break;
      case "memory":
        models?.resized(event.memory);
        break;
      case "model-timed":
      case "outdated":
      case "line":
        break;
      default:
        unreachable(event);
    }
  }

  /** Replaces the view with the agent's state, after events were missed. */
  restore({ containers }: ListedInstance): void {
    this.#end = null;
    this.#isAway = false;
    for (const [position, { health, models, memory }] of containers.entries()) {
      const container = this.containers[position];
      if (container === undefined) continue;
      container.models?.clear();
      for (const model of models) container.models?.changed(model);
      if (memory !== null) container.models?.resized(memory);
      container.setHealth(health);
    }
    this.#changed.notify();
  }

  #ended(error: Error | null): void {
    this.#end = { error };
    for (const container of this.containers) {
      container.models?.clear();
      container.setHealth({ ...container.health, at: "stopped" });
    }
    this.#changed.notify();
  }
}
