import { assert, delay, retryWrite, TaskGroup, unreachable } from "@galatea/base";
import {
  ContainerConnectionLost,
  type AgentInstance,
  type ContainerView,
  type InstanceEvent,
} from "../instance-agent/index.ts";
import type { InstanceBudget } from "../definitions/index.ts";
import type { InstanceUsage, MissingIsolation } from "../instances/index.ts";
import { InstanceInvocations, type InvocationTarget } from "../invocations/index.ts";
import { instanceSpec, prepareContainer, type PreparedContainer } from "./agent-spec.ts";
import type { VariantInstanceOptions } from "./variant-instance-options.ts";
import type { MultiModelContainer } from "./model-router.ts";

/** Pause between attempts to record the access keys of an adopted instance, in milliseconds. */
const recordRetryMs = 1000;

/** One instance of a variant. The agent of its node runs it; this object sends invocations to it and records its metrics and log lines. */
export class VariantInstance implements AsyncDisposable {
  readonly #options: VariantInstanceOptions;
  readonly #openings: readonly PreparedContainer[];
  readonly #instance: AgentInstance;
  readonly #tasks: TaskGroup;
  #loadedCount = 0;
  /** The containers to which requests can be sent. */
  readonly invoked: readonly InvocationTarget[];
  readonly invocations: InstanceInvocations;

  constructor(options: VariantInstanceOptions) {
    this.#options = options;
    const { fleet, plan, placed } = options;
    this.#tasks = new TaskGroup((error) => {
      fleet.logger.error("failed to create an instance on its node", { instance: options.id, error: String(error) });
    });
    const openings = options.containers.map((planned) => prepareContainer(planned, options));
    this.#openings = openings;
    this.#instance = fleet
      .agentOf(placed.node.id)
      .instance(instanceSpec(options, openings), (event) => this.#noted(event));
    this.invoked = openings.map(({ planned, logStreamArn }, index): InvocationTarget => {
      const container = this.#instance.containers[index];
      assert(container !== undefined, "an instance has a container for each of its spec");
      return {
        container,
        place: { ...options.place, containerName: planned.name, logStreamArn },
        modelDataUrl: planned.definition.ModelDataUrl ?? "",
      };
    });
    this.invocations = new InstanceInvocations({
      containers: this.invoked,
      executionMode: plan.model.executionMode,
      variantName: plan.variant.VariantName,
      metrics: options.metrics,
      limits: fleet.invocationLimits,
      clock: fleet.clock,
    });
  }

  get ordinal(): number {
    return this.#options.ordinal;
  }

  holderOf(containerName: string | null): MultiModelContainer | null {
    const named = ({ container: { name, view } }: InvocationTarget) =>
      containerName === null ? view.models !== null : name === containerName;
    const container = this.invoked.find(named)?.container;
    const models = container?.view.models ?? null;
    return container === undefined || models === null ? null : { container, models };
  }

  get id(): string {
    return this.#options.id;
  }

  get budget(): InstanceBudget {
    return this.#options.budget;
  }

  /** Marks the instance as draining in its node's reservation. */
  drains(): void {
    this.#options.placed.markDraining();
  }

  /** Sets the bytes of memory that the instance's containers use above their reservation. */
  measured(beyondBytes: number): void {
    this.#options.placed.setExcessBytes(beyondBytes);
  }

  get inFlightCount(): number {
    return this.invocations.inFlightCount;
  }

  /** True while all containers of the instance are in service. */
  get isInService(): boolean {
    return this.#instance.view.isInService;
  }

  /** Returns whether the named container is in service; for null, whether all containers are. */
  serves(containerName: string | null): boolean {
    return this.#named(containerName).every((view) => view.isInService);
  }

  /** Returns whether the named container (for null: any container) is being adopted after a restart, so that its loaded models are not known yet. */
  isAdopting(containerName: string | null): boolean {
    return this.#named(containerName).some((view) => view.isAdopting);
  }

  /** Resolves when the loaded models of the named container (for null: of all containers) are known. */
  async adopted(containerName: string | null, signal: AbortSignal): Promise<void> {
    await Promise.all(this.#named(containerName).map((view) => view.adopted(signal)));
  }

  /** False if a container is not in service, or if a connection to it broke and no later ping was successful. */
  get isHealthy(): boolean {
    return this.#instance.view.containers.every((view) => view.isHealthy);
  }

  /** True if the agent of the instance's node has lost the instance or does not respond. */
  get isLost(): boolean {
    return this.#instance.view.isLost;
  }

  /** True if the agent of the instance's node shuts down and the instance still serves. */
  get isDraining(): boolean {
    return this.#instance.view.isDraining;
  }

  /** Resolves when the instance is lost, or is draining. */
  async lostOrDraining(signal: AbortSignal): Promise<void> {
    await this.#instance.view.lostOrDraining(signal);
  }

  get unconfined(): MissingIsolation {
    return Object.assign({}, ...this.#instance.view.containers.map(({ unconfined }) => unconfined)) as MissingIsolation;
  }

  get loadedCount(): number {
    return this.#instance.view.loadedCount;
  }

  /** Downloads the model data and starts all containers concurrently. If one fails, the whole instance is removed. */
  async start(signal: AbortSignal): Promise<void> {
    try {
      // The access keys are recorded before code runs with them, so that they stay valid after a restart of the platform.
      const { clock, logger } = this.#options.fleet;
      await retryWrite(() => this.#recordKeys(), {
        clock,
        logger,
        recordDescription: "an instance's access key",
        ownerName: this.id,
        retries: "unreachable database",
        signal,
      });
      signal.throwIfAborted();
      await this.#instance.put("delete");
      await this.#instance.view.started(signal);
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Starts an instance that was in service before the platform stopped. Failed starts are retried until it is in service. */
  resume(): void {
    this.#tasks.run(async (closing) => {
      const { clock, logger } = this.#options.fleet;
      for (let isRecorded = false; !isRecorded;) {
        try {
          await this.#recordKeys();
          isRecorded = true;
        } catch (error) {
          logger.warning("failed to record the access keys of an instance; retrying", {
            instance: this.id,
            error: String(error),
          });
          await delay(clock, recordRetryMs, closing);
        }
      }
      closing.throwIfAborted();
      try {
        await this.#instance.put("retry");
      } catch (error) {
        if (!(error instanceof ContainerConnectionLost)) throw error;
        this.#instance.view.markAway();
      }
    });
  }

  /** Resolves when the named container (for null: all containers) is in service; rejects while its starts keep failing. */
  async ready(containerName: string | null, signal: AbortSignal): Promise<void> {
    await Promise.all(this.#named(containerName).map((view) => view.ready(signal)));
  }

  /** Returns the resource usage of each container by name; null for a container that does not run. */
  async usages(): Promise<readonly (readonly [name: string, usage: InstanceUsage | null])[]> {
    return await this.#instance.usages();
  }

  /** Stops the instance because the platform shuts down. Unpacked models stay on disk for the next start. */
  async shutDown(): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#instance.shutDown();
    this.#options.placed[Symbol.dispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#instance.discard();
    await Promise.all(this.#openings.map(({ credentials }) => credentials[Symbol.asyncDispose]()));
    this.#options.placed[Symbol.dispose]();
  }

  async #recordKeys(): Promise<void> {
    await Promise.all(this.#openings.map(({ credentials }) => credentials.record()));
  }

  #named(containerName: string | null): readonly ContainerView[] {
    const { containers } = this.#instance.view;
    return containerName === null ? containers : containers.filter(({ name }) => name === containerName);
  }

  #noted(event: InstanceEvent): void {
    const { metrics, modelOutdated } = this.#options;
    switch (event.kind) {
      case "line":
        this.#openings[event.position]?.write(event.text);
        break;
      case "model":
        if (this.#loadedCount === this.loadedCount) break;
        this.#loadedCount = this.loadedCount;
        metrics.recordInstance("LoadedModelCount", this.#loadedCount);
        break;
      case "model-timed": {
        const metric = timingMetrics[event.what];
        metrics.recordMultiModel(metric, event.durationUs);
        if (metric === "ModelLoadingTime") metrics.recordTargetModel(event.target, metric, event.durationUs);
        break;
      }
      case "outdated":
        modelOutdated(this.#openings[event.position]?.planned.name ?? "", event.target);
        break;
      case "health":
      case "model-used":
      case "memory":
      case "ended":
        break;
      default:
        unreachable(event);
    }
  }
}

const timingMetrics = {
  downloaded: "ModelDownloadingTime",
  loaded: "ModelLoadingTime",
  unloaded: "ModelUnloadingTime",
} as const;
