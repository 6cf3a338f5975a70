import { delay, retryWrite, TaskGroup, unreachable } from "@galatea/base";
import { ContainerConnectionLost, type InstanceEvent } from "../instance-agent/index.ts";
import type { InstanceBudget } from "../definitions/index.ts";
import type { InstanceUsage, MissingIsolation } from "../instances/index.ts";
import { instanceSpec, prepareContainer, type PreparedContainer } from "./agent-spec.ts";
import type { VariantInstanceOptions } from "./variant-instance-options.ts";
import { RoutedInstance } from "./routed-instance.ts";

/** Pause between attempts to record the access keys of an adopted instance, in milliseconds. */
const recordRetryMs = 1000;

/** One instance of a variant. The agent of its node runs it; this object sends invocations to it and records its metrics and log lines. */
export class VariantInstance extends RoutedInstance implements AsyncDisposable {
  readonly #options: VariantInstanceOptions;
  readonly #openings: readonly PreparedContainer[];
  readonly #tasks: TaskGroup;
  #loadedCount = 0;

  constructor(options: VariantInstanceOptions) {
    const { fleet, plan, placed, id, ordinal, metrics } = options;
    const openings = options.containers.map((planned) => prepareContainer(planned, options));
    super({
      id,
      ordinal,
      open: (onEvent) => fleet.agentOf(placed.node.id).instance(instanceSpec(options, openings), onEvent),
      containers: openings.map(({ planned, logStreamArn }) => ({
        source: { ...options.place, containerName: planned.name, logStreamArn },
        modelDataUrl: planned.definition.ModelDataUrl ?? "",
      })),
      executionMode: plan.model.executionMode,
      variantName: plan.variant.VariantName,
      metrics,
      limits: fleet.invocationLimits,
      clock: fleet.clock,
    });
    this.#options = options;
    this.#openings = openings;
    this.#tasks = new TaskGroup((error) => {
      fleet.logger.error("failed to create an instance on its node", { instance: id, error: String(error) });
    });
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

  /** True if the agent of the instance's node has lost the instance or does not respond. */
  get isLost(): boolean {
    return this.instance.view.isLost;
  }

  /** True if the agent of the instance's node shuts down and the instance still serves. */
  get isDraining(): boolean {
    return this.instance.view.isDraining;
  }

  /** Resolves when the instance is lost, or is draining. */
  async lostOrDraining(signal: AbortSignal): Promise<void> {
    await this.instance.view.lostOrDraining(signal);
  }

  get unconfined(): MissingIsolation {
    return Object.assign({}, ...this.instance.view.containers.map(({ unconfined }) => unconfined)) as MissingIsolation;
  }

  get loadedCount(): number {
    return this.instance.view.loadedCount;
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
      await this.instance.put("delete");
      await this.instance.view.started(signal);
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
        await this.instance.put("retry");
      } catch (error) {
        if (!(error instanceof ContainerConnectionLost)) throw error;
        this.instance.view.markAway();
      }
    });
  }

  /** Returns the resource usage of each container by name; null for a container that does not run. */
  async usages(): Promise<readonly (readonly [name: string, usage: InstanceUsage | null])[]> {
    return await this.instance.usages();
  }

  /** Stops the instance because the platform shuts down. Unpacked models stay on disk for the next start. */
  async shutDown(): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.instance.shutDown();
    this.#options.placed[Symbol.dispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.instance.discard();
    await Promise.all(this.#openings.map(({ credentials }) => credentials[Symbol.asyncDispose]()));
    this.#options.placed[Symbol.dispose]();
  }

  async #recordKeys(): Promise<void> {
    await Promise.all(this.#openings.map(({ credentials }) => credentials.record()));
  }

  protected override noted(event: InstanceEvent): void {
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
