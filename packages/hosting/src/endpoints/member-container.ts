import { assert } from "@galatea/base";
import { resolveImage, type BuiltInRuntime, type ContainerDefinition } from "../definitions/index.ts";
import { ModelAgent, agentLimits, createArchiveSource, type ModelTrees } from "../agent/index.ts";
import {
  InstanceContainer,
  containerEnvironment,
  reachOf,
  type ContainerPlace,
  type ContainerSpec,
  type IssuedCredentials,
} from "../instances/index.ts";
import type { InvokedContainer } from "../invocations/index.ts";
import { containerModels } from "./container-models.ts";
import type { MemberOptions } from "./member-options.ts";
import type { PlannedContainer } from "./planned-containers.ts";

/** What a container is opened with: what its host is told, the credentials of its code, and where its logs are. */
export interface ContainerOpening {
  readonly planned: PlannedContainer;
  readonly spec: ContainerSpec;
  readonly credentials: IssuedCredentials;
  readonly logStreamArn: string;
}

export function openingOf(planned: PlannedContainer, member: MemberOptions): ContainerOpening {
  const { fleet, plan, id, seat, ownerName, logStream } = member;
  const { logGroup: group, region, accountId } = member.place;
  const { variant } = plan;
  const stream = `${logStream}${planned.isOnly ? "" : `/${planned.name}`}`;
  const write = fleet.openLog(group, stream);
  const owner = { endpointName: ownerName, accountId, region, logGroup: group };
  const reach = reachOf(planned.definition);
  const credentials = fleet.credentials.issue({ instanceId: id, containerName: planned.name, ...owner, ...reach });
  return {
    planned,
    credentials,
    logStreamArn: `arn:aws:logs:${region}:${accountId}:log-group:${group}:log-stream:${stream}`,
    spec: {
      title: `${ownerName}/${stream}`,
      runtime: runtimeOf(planned.definition),
      models: containerModels(planned.definition, { variant, endpointName: ownerName, seat }),
      environment: containerEnvironment(planned.definition, credentials, region),
      modelMemoryBytes: planned.modelMemoryBytes,
      concurrencyMax: variant.ServerlessConfig?.MaxConcurrency ?? null,
      output: (line) => write(Buffer.from(`${line}\n`)),
    },
  };
}

function runtimeOf({ Image: image = "" }: ContainerDefinition): BuiltInRuntime {
  const runtime = resolveImage(image);
  assert(runtime !== null, `CreateModel took the image ${image}`);
  return runtime;
}

/** One container of an instance: kept in service, and its models where it has many. */
export class MemberContainer implements AsyncDisposable {
  readonly container: InstanceContainer;
  readonly agent: ModelAgent | null;
  readonly #opening: ContainerOpening;
  readonly #member: MemberOptions;

  constructor(opening: ContainerOpening, place: ContainerPlace, member: MemberOptions) {
    this.#opening = opening;
    this.#member = member;
    const { fleet, plan, id } = member;
    const startSeconds = plan.variant.ContainerStartupHealthCheckTimeoutInSeconds;
    const { instanceLimits } = fleet;
    this.container = new InstanceContainer({
      id,
      name: opening.planned.name,
      hosted: place,
      limits: startSeconds === undefined ? instanceLimits : { ...instanceLimits, startMsMax: startSeconds * 1000 },
      clock: fleet.clock,
      logger: fleet.logger,
      prepare: async (signal) => {
        // The write to the disk and the preparation take place at the same time.
        const recorded = opening.credentials.record();
        recorded.catch(() => {});
        await place.prepare(signal);
        await recorded;
        await this.agent?.adopt();
      },
      onLost: () => this.agent?.containerLost(),
    });
    this.agent = place.trees === null ? null : this.#openAgent(place.trees);
  }

  get name(): string {
    return this.#opening.planned.name;
  }

  get isInService(): boolean {
    return this.container.client !== null;
  }

  /** What invocations need of it. */
  get invoked(): InvokedContainer {
    const { planned, logStreamArn } = this.#opening;
    return {
      container: this.container,
      agent: this.agent,
      place: { ...this.#member.place, containerName: planned.name, logStreamArn },
      modelDataUrl: planned.definition.ModelDataUrl ?? "",
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.agent?.[Symbol.asyncDispose]();
    await this.container[Symbol.asyncDispose]();
    await this.#opening.credentials[Symbol.asyncDispose]();
  }

  #openAgent(trees: ModelTrees): ModelAgent {
    const { fleet, metrics, placed, budget } = this.#member;
    const { definition, modelDiskBytes, modelMemoryBytes, promisedBytes } = this.#opening.planned;
    const keepsModels = definition.MultiModelConfig?.ModelCacheSetting !== "Disabled";
    // Where every request loads its model, as many load at once as the processors can work on.
    const loadsMax = keepsModels ? agentLimits.loadsMax : Math.max(agentLimits.loadsMax, 2 * budget.vcpuCount);
    return new ModelAgent({
      trees,
      limits: { ...agentLimits, keepsModels, loadsMax, diskBytesMax: modelDiskBytes, memoryBytesMax: modelMemoryBytes },
      source: createArchiveSource(definition.ModelDataUrl ?? "", fleet.store),
      container: (signal) => this.container.trustedClient(signal),
      observer: {
        downloaded: (_target, durationUs) => metrics.recordMultiModel("ModelDownloadingTime", durationUs),
        loaded: (target, durationUs) => {
          metrics.recordMultiModel("ModelLoadingTime", durationUs);
          metrics.recordModel(target, "ModelLoadingTime", durationUs);
        },
        unloaded: (_target, durationUs) => metrics.recordMultiModel("ModelUnloadingTime", durationUs),
        loadedCountChanged: () => this.#member.loadedCountChanged(),
        outdated: (target) => this.#member.modelOutdated(this.name, target),
      },
      joinMemory: (agent) => placed.memory.join(agent, promisedBytes),
      clock: fleet.clock,
      logger: fleet.logger,
    });
  }
}
