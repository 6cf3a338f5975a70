import { assert, delay, retryWrite, TaskGroup, unreachable } from "@galatea/base";
import type { AgentInstance, ContainerView, InstanceEvent } from "../instance-agent/index.ts";
import type { InstanceBudget } from "../definitions/index.ts";
import type { InstanceUsage, Unconfined } from "../instances/index.ts";
import { InstanceInvocations, type InvokedContainer } from "../invocations/index.ts";
import { instanceSpec, openingOf, type ContainerOpening } from "./agent-spec.ts";
import type { MemberOptions } from "./member-options.ts";
import type { ModelHolder } from "./model-router.ts";

/** Pause between attempts to record the keys of an adopted instance. */
const recordRetryMs = 1000;

/** One instance of a variant, which its node's agent runs: its spec, its metrics and log lines, and its invocations. */
export class FleetMember implements AsyncDisposable {
  readonly #options: MemberOptions;
  readonly #openings: readonly ContainerOpening[];
  readonly #instance: AgentInstance;
  readonly #tasks: TaskGroup;
  #loadedCount = 0;
  /** The containers that requests can go to. */
  readonly invoked: readonly InvokedContainer[];
  readonly invocations: InstanceInvocations;

  constructor(options: MemberOptions) {
    this.#options = options;
    const { fleet, plan, placed } = options;
    this.#tasks = new TaskGroup((error) => {
      fleet.logger.error("failed to create an instance on its node", { instance: options.id, error: String(error) });
    });
    const openings = options.containers.map((planned) => openingOf(planned, options));
    this.#openings = openings;
    this.#instance = fleet
      .agentOf(placed.node.id)
      .instance(instanceSpec(options, openings), (event) => this.#noted(event));
    this.invoked = openings.map(({ planned, logStreamArn }, index): InvokedContainer => {
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

  holderOf(containerName: string | null): ModelHolder | null {
    const named = ({ container: { name, view } }: InvokedContainer) =>
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

  /** Counts the instance as draining on its node. */
  drains(): void {
    this.#options.placed.markDraining();
  }

  /** Reports to its node the bytes that its containers use in addition to their reservation. */
  measured(beyondBytes: number): void {
    this.#options.placed.setExcessBytes(beyondBytes);
  }

  get inFlightCount(): number {
    return this.invocations.inFlightCount;
  }

  /** True while all its containers are in service. */
  get isInService(): boolean {
    return this.#instance.view.isInService;
  }

  /** Returns whether it can take a request for a container, or, for null, for all containers. */
  serves(containerName: string | null): boolean {
    return this.#named(containerName).every((view) => view.isInService);
  }

  /** Returns whether one of these containers may have models of the platform's previous run that are not known yet. */
  isAdopting(containerName: string | null): boolean {
    return this.#named(containerName).some((view) => view.isAdopting);
  }

  /** Resolves when all models of these containers are known. */
  async adopted(containerName: string | null, signal: AbortSignal): Promise<void> {
    await Promise.all(this.#named(containerName).map((view) => view.adopted(signal)));
  }

  /** False while one of its containers is known to end soon. */
  get isHealthy(): boolean {
    return this.#instance.view.containers.every((view) => view.isHealthy);
  }

  get unconfined(): Unconfined {
    return Object.assign({}, ...this.#instance.view.containers.map(({ unconfined }) => unconfined)) as Unconfined;
  }

  get loadedCount(): number {
    return this.#instance.view.loadedCount;
  }

  /** Downloads the models' data and starts all containers at once. On failure nothing is left of the instance. */
  async start(signal: AbortSignal): Promise<void> {
    try {
      // The keys are recorded before code runs with them: the platform's next run has to know them.
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

  /** Starts an instance that was in service before the platform ended; retries until it is. */
  resume(): void {
    this.#tasks.run(async (closing) => {
      const { clock, logger } = this.#options.fleet;
      for (let isRecorded = false; !isRecorded;) {
        try {
          await this.#recordKeys();
          isRecorded = true;
        } catch (error) {
          logger.warning("an instance's keys could not be recorded", { instance: this.id, error: String(error) });
          await delay(clock, recordRetryMs, closing);
        }
      }
      closing.throwIfAborted();
      await this.#instance.put("retry");
    });
  }

  /** Resolves once the containers that a request is for are in service; rejects while their starts keep failing. */
  async ready(containerName: string | null, signal: AbortSignal): Promise<void> {
    await Promise.all(this.#named(containerName).map((view) => view.ready(signal)));
  }

  /** Returns the usage of each container by its name; null for a container that does not run. */
  async usages(): Promise<readonly (readonly [name: string, usage: InstanceUsage | null])[]> {
    return await this.#instance.usages();
  }

  /** Stops everything when the platform ends; unpacked models stay for its next run. */
  async shutDown(): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#instance.shutDown();
    this.#options.placed[Symbol.dispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#instance.delete();
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
