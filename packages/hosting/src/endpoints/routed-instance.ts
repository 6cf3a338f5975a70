import { assert, type Clock } from "@galatea/base";
import type { ModelRecord } from "../definitions/index.ts";
import type { AgentInstance, ContainerView, InstanceEvent } from "../instance-agent/index.ts";
import {
  InstanceInvocations,
  type InvocationLimits,
  type InvocationSource,
  type InvocationTarget,
} from "../invocations/index.ts";
import type { VariantMetrics } from "../series/index.ts";
import type { AdoptedInstance, MultiModelContainer } from "./model-router.ts";

/** A container of an instance, for errors and metrics. */
export interface RoutedContainer {
  readonly source: InvocationSource;
  readonly modelDataUrl: string;
}

export interface RoutedInstanceOptions {
  readonly id: string;
  /** Ordinal of the instance in its fleet, from 0. */
  readonly ordinal: number;
  /** Opens the client of the instance. */
  readonly open: (onEvent: (event: InstanceEvent) => void) => AgentInstance;
  /** The containers, in the order of the instance's spec. */
  readonly containers: readonly RoutedContainer[];
  readonly executionMode: ModelRecord["executionMode"];
  readonly variantName: string;
  readonly metrics: VariantMetrics;
  readonly limits: InvocationLimits;
  readonly clock: Clock;
}

/** An instance to which requests are routed: the view of its state, and its invocations. */
export class RoutedInstance implements AdoptedInstance {
  readonly id: string;
  readonly ordinal: number;
  /** The containers to which requests can be sent. */
  readonly invoked: readonly InvocationTarget[];
  readonly invocations: InstanceInvocations;
  protected readonly instance: AgentInstance;

  constructor(options: RoutedInstanceOptions) {
    const { id, ordinal, containers, executionMode, variantName, metrics, limits, clock } = options;
    this.id = id;
    this.ordinal = ordinal;
    this.instance = options.open((event) => this.noted(event));
    this.invoked = containers.map(({ source: place, modelDataUrl }, index): InvocationTarget => {
      const container = this.instance.containers[index];
      assert(container !== undefined, "an instance has a container for each of its spec");
      return { container, place, modelDataUrl };
    });
    this.invocations = new InstanceInvocations({
      containers: this.invoked,
      executionMode,
      variantName,
      metrics,
      limits,
      clock,
    });
  }

  /** Called with each event of the instance, after its view has changed. */
  protected noted(_event: InstanceEvent): void {}

  holderOf(containerName: string | null): MultiModelContainer | null {
    const named = ({ container: { name, view } }: InvocationTarget) =>
      containerName === null ? view.models !== null : name === containerName;
    const container = this.invoked.find(named)?.container;
    const models = container?.view.models ?? null;
    return container === undefined || models === null ? null : { container, models };
  }

  get inFlightCount(): number {
    return this.invocations.inFlightCount;
  }

  /** True while all containers of the instance are in service. */
  get isInService(): boolean {
    return this.instance.view.isInService;
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
    return this.instance.view.containers.every((view) => view.isHealthy);
  }

  /** Resolves when the named container (for null: all containers) is in service; rejects while its starts keep failing. */
  async ready(containerName: string | null, signal: AbortSignal): Promise<void> {
    await Promise.all(this.#named(containerName).map((view) => view.ready(signal)));
  }

  #named(containerName: string | null): readonly ContainerView[] {
    const { containers } = this.instance.view;
    return containerName === null ? containers : containers.filter(({ name }) => name === containerName);
  }
}
