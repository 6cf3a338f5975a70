import { assert } from "@galatea/base";
import { resolveImage, type ContainerDefinition, type ContainerRuntime } from "../definitions/index.ts";
import {
  modelCacheLimits,
  type AgentContainerSpec,
  type AgentInstanceSpec,
  type ModelCacheSpec,
} from "../instance-agent/index.ts";
import { containerEnvironment, grantedAccess, type IssuedCredentials } from "../instances/index.ts";
import { containerModels } from "./container-models.ts";
import type { VariantInstanceOptions } from "./variant-instance-options.ts";
import type { PlannedContainer } from "./planned-containers.ts";

/** The data to start a container with: its plan, its specification, the credentials of its code, and the sink for its output lines. */
export interface PreparedContainer {
  readonly planned: PlannedContainer;
  readonly spec: AgentContainerSpec;
  readonly credentials: IssuedCredentials;
  readonly logStreamArn: string;
  readonly write: (line: string) => void;
}

export function prepareContainer(planned: PlannedContainer, member: VariantInstanceOptions): PreparedContainer {
  const { fleet, plan, id, ownerName, logStream } = member;
  const { logGroup: group, region, accountId } = member.place;
  const { variant } = plan;
  const stream = `${logStream}${planned.isOnly ? "" : `/${planned.name}`}`;
  const write = fleet.openLog(group, stream);
  const owner = { endpointName: ownerName, accountId, region, logGroup: group };
  const reach = grantedAccess(planned.definition);
  const credentials = fleet.credentials.issue({ instanceId: id, containerName: planned.name, ...owner, ...reach });
  return {
    planned,
    credentials,
    logStreamArn: `arn:aws:logs:${region}:${accountId}:log-group:${group}:log-stream:${stream}`,
    write: (line) => write(Buffer.from(`${line}\n`)),
    spec: {
      name: planned.name,
      title: `${ownerName}/${stream}`,
      runtime: runtimeOf(planned.definition),
      models: containerModels(planned.definition, variant),
      cache: cacheOf(planned, member),
      environment: containerEnvironment(planned.definition, credentials, region),
      modelMemoryBytes: planned.modelMemoryBytes,
      concurrencyMax: variant.ServerlessConfig?.MaxConcurrency ?? null,
    },
  };
}

export function instanceSpec(
  { fleet, plan, id, budget, placed, fleetKey, ownerName: endpointName, ordinal }: VariantInstanceOptions,
  openings: readonly PreparedContainer[],
): AgentInstanceSpec {
  const { instanceLimits: limits, invocationLimits } = fleet;
  const { InstanceType: instanceType } = plan.variant;
  const startSeconds = plan.variant.ContainerStartupHealthCheckTimeoutInSeconds;
  const [first, ...more] = openings.map(({ spec }) => spec);
  assert(first !== undefined, "a model has one container at least");
  return {
    id,
    owner: fleetKey === null ? null : { endpointName, fleetKey, ordinal },
    ...(instanceType === "" ? {} : { instanceType }),
    budget,
    reservedBytes: placed.reservedBytes,
    containers: [first, ...more],
    limits: startSeconds === undefined ? limits : { ...limits, startMsMax: startSeconds * 1000 },
    restartWaitMsMax: invocationLimits.restartWaitMsMax,
  };
}

function cacheOf(planned: PlannedContainer, { budget }: VariantInstanceOptions): ModelCacheSpec | null {
  const { definition, modelDiskBytes, modelMemoryBytes, guaranteedBytes } = planned;
  if (definition.Mode !== "MultiModel") return null;
  const keepsModels = definition.MultiModelConfig?.ModelCacheSetting !== "Disabled";
  // A cache that keeps no models loads one for every request, so it may run more loads concurrently: up to two per vCPU.
  const loadsMax = keepsModels ? modelCacheLimits.loadsMax : Math.max(modelCacheLimits.loadsMax, 2 * budget.vcpuCount);
  return {
    limits: {
      ...modelCacheLimits,
      keepsModels,
      loadsMax,
      diskBytesMax: modelDiskBytes,
      memoryBytesMax: modelMemoryBytes,
    },
    guaranteedBytes,
  };
}

function runtimeOf({ Image: image = "" }: ContainerDefinition): ContainerRuntime {
  return resolveImage(image) ?? { image };
}
