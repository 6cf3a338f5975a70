import type { ContainerDefinition, VariantPlan } from "../definitions/index.ts";
import { groupsFootprint, type Footprint } from "../endpoints/index.ts";
import type { TransformJobRecord } from "./transform-state.ts";

const strategyNames = { MultiRecord: "MULTI_RECORD", SingleRecord: "SINGLE_RECORD" } as const;

type PlannedJob = Pick<TransformJobRecord, "model" | "request" | "name" | "expectedBytes">;

/** Returns the resources of a job in progress. */
export function transformFootprint(job: PlannedJob): Footprint {
  return groupsFootprint([
    { plan: transformVariantPlan(job), instanceCount: job.request.TransformResources.InstanceCount },
  ]);
}

/**
 * Returns the plan of a job's instances: the containers of its model, with the job's environment variables and those of
 * batch mode.
 */
export function transformVariantPlan({ model, request, name, expectedBytes }: PlannedJob): VariantPlan {
  const { TransformResources: resources, Environment: requested = {} } = request;
  const batch = batchVariables(request);
  const withVariables = (container: ContainerDefinition): ContainerDefinition => ({
    ...container,
    Environment: { ...container.Environment, ...requested, ...batch },
  });
  const containers = model.containers.map(withVariables);
  return {
    ...(expectedBytes === undefined ? {} : { expectedBytes }),
    model: { ...model, containers },
    variant: {
      VariantName: name,
      ModelName: model.name,
      InstanceType: resources.InstanceType,
      InitialInstanceCount: resources.InstanceCount,
      InitialVariantWeight: 1,
    },
  };
}

function batchVariables(request: TransformJobRecord["request"]): Readonly<Record<string, string>> {
  const { MaxPayloadInMB: payload, BatchStrategy: strategy, MaxConcurrentTransforms: concurrency = 0 } = request;
  return {
    SAGEMAKER_BATCH: "True",
    ...(payload === undefined ? {} : { SAGEMAKER_MAX_PAYLOAD_IN_MB: String(payload) }),
    ...(strategy === undefined ? {} : { SAGEMAKER_BATCH_STRATEGY: strategyNames[strategy] }),
    ...(concurrency === 0 ? {} : { SAGEMAKER_MAX_CONCURRENT_TRANSFORMS: String(concurrency) }),
  };
}
