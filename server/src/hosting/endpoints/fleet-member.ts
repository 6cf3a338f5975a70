import { ModelAgent, agentLimits, createArchiveSource, type ModelTrees } from "../agent/index.ts";
import type { InstanceBudget, VariantPlan } from "../definitions/index.ts";
import {
  EndpointInstance,
  containerEnvironment,
  modelDataUrlOf,
  type HostedInstance,
  type IssuedCredentials,
  type Unconfined,
} from "../instances/index.ts";
import { InstanceInvocations, type InvocationPlace } from "../invocations/index.ts";
import type { VariantMetrics } from "../series/index.ts";
import type { FleetOptions } from "./fleet-options.ts";
import { instanceModels } from "./instance-models.ts";

export interface MemberOptions {
  readonly id: string;
  readonly plan: VariantPlan;
  readonly budget: InstanceBudget;
  readonly modelMemoryBytes: number;
  readonly modelDiskBytes: number;
  readonly fleet: FleetOptions;
  readonly metrics: VariantMetrics;
  readonly place: Omit<InvocationPlace, "logStreamArn">;
}

/** One instance of a variant: its container, its models where it has many, and its invocations. */
export class FleetMember implements AsyncDisposable {
  readonly #options: MemberOptions;
  readonly #instance: EndpointInstance;
  readonly #agent: ModelAgent | null;
  readonly #hosted: HostedInstance;
  readonly #credentials: IssuedCredentials;
  /** What goes to this instance, for whoever chose it. */
  readonly invocations: InstanceInvocations;

  constructor(options: MemberOptions) {
    this.#options = options;
    const { fleet, plan, id } = options;
    const group = `/aws/sagemaker/Endpoints/${options.place.endpointName}`;
    const stream = `${plan.variant.VariantName}/${id}`;
    const { region, accountId } = options.place;
    const startSeconds = plan.variant.ContainerStartupHealthCheckTimeoutInSeconds;
    const { instanceLimits } = fleet;
    const write = fleet.openLog(group, stream);
    this.#credentials = fleet.issue({
      instanceId: id,
      endpointName: options.place.endpointName,
      accountId,
      region,
      modelDataUrl: modelDataUrlOf(plan.model.containers[0]),
    });
    this.#hosted = fleet.host.open({
      instanceId: id,
      title: `${options.place.endpointName}/${stream}`,
      runtime: "tritonserver",
      models: instanceModels(plan, options.place.endpointName),
      environment: containerEnvironment(plan.model.containers[0], this.#credentials, region),
      budget: options.budget,
      modelMemoryBytes: options.modelMemoryBytes,
      output: (line) => write(Buffer.from(`${line}\n`)),
    });
    this.#instance = new EndpointInstance({
      id,
      hosted: this.#hosted,
      limits: startSeconds === undefined ? instanceLimits : { ...instanceLimits, startMsMax: startSeconds * 1000 },
      clock: fleet.clock,
      logger: fleet.logger,
      prepare: (signal) => this.#prepare(signal),
      onLost: () => this.#agent?.containerLost(),
    });
    this.#agent = this.#hosted.trees === null ? null : this.#openAgent(this.#hosted.trees);
    const logStreamArn = `arn:aws:logs:${region}:${accountId}:log-group:${group}:log-stream:${stream}`;
    this.invocations = new InstanceInvocations({
      instance: this.#instance,
      agent: this.#agent,
      place: { ...options.place, logStreamArn },
      variantName: plan.variant.VariantName,
      modelDataUrl: plan.model.containers[0].ModelDataUrl ?? "",
      metrics: options.metrics,
      limits: fleet.invocationLimits,
      clock: fleet.clock,
    });
  }

  get id(): string {
    return this.#options.id;
  }

  get inFlightCount(): number {
    return this.invocations.inFlightCount;
  }

  get isInService(): boolean {
    return this.#instance.client !== null;
  }

  get unconfined(): Unconfined | null {
    return this.#instance.client?.unconfined ?? null;
  }

  get loadedCount(): number {
    return this.#agent?.loadedCount ?? 0;
  }

  /** Brings the model's data and the container into service. On failure nothing of it is left. */
  async start(signal: AbortSignal): Promise<void> {
    try {
      await this.#instance.start(signal);
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** For what was in service before the platform ended: tried until it is again. */
  resume(): void {
    this.#instance.resume();
  }

  /** Resolves once the container is in service; rejects while its starts keep failing. */
  async ready(signal: AbortSignal): Promise<void> {
    await this.#instance.ready(signal);
  }

  usage(): ReturnType<EndpointInstance["usage"]> {
    return this.#instance.usage();
  }

  get diskUsedBytes(): number {
    return this.#agent?.diskUsedBytes ?? 0;
  }

  /** For the platform's end: everything stops, and unpacked models stay for its next life. */
  async leave(): Promise<void> {
    await this.#stop();
    await this.#hosted.leave();
  }

  async #stop(): Promise<void> {
    await this.#agent?.[Symbol.asyncDispose]();
    await this.#instance[Symbol.asyncDispose]();
    this.#credentials[Symbol.dispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    await this.#hosted[Symbol.asyncDispose]();
  }

  async #prepare(signal: AbortSignal): Promise<void> {
    await this.#hosted.prepare(signal);
    await this.#agent?.adopt();
  }

  #openAgent(trees: ModelTrees): ModelAgent {
    const { fleet, plan, metrics, modelDiskBytes, modelMemoryBytes } = this.#options;
    return new ModelAgent({
      trees,
      limits: { ...agentLimits, diskBytesMax: modelDiskBytes, memoryBytesMax: modelMemoryBytes },
      source: createArchiveSource(plan.model.containers[0].ModelDataUrl ?? "", fleet.store),
      container: (signal) => this.#instance.trustedClient(signal),
      observer: {
        downloaded: (_target, durationUs) => metrics.recordMultiModel("ModelDownloadingTime", durationUs),
        loaded: (target, durationUs) => {
          metrics.recordMultiModel("ModelLoadingTime", durationUs);
          metrics.recordModel(target, "ModelLoadingTime", durationUs);
        },
        unloaded: (_target, durationUs) => metrics.recordMultiModel("ModelUnloadingTime", durationUs),
        loadedCountChanged: () => metrics.recordInstance("LoadedModelCount", this.loadedCount),
      },
      clock: fleet.clock,
      logger: fleet.logger,
    });
  }
}
