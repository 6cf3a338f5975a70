import {
  failureReason,
  groupKey,
  isProductionGroup,
  currentStep,
  type EndpointDescription,
  type EndpointRecord,
  type Generation,
  type GroupSize,
  type ServerlessConfig,
  type VariantGroup,
} from "@galatea/hosting";
import type { SagemakerOperations } from "../../spec/gen/sagemaker.ts";

type Described = SagemakerOperations["DescribeEndpoint"]["output"];

export function describeEndpoint(described: EndpointDescription): Described {
  const { record } = described;
  const { state, generations, deploymentConfig } = record;
  const reason = failureReason(state);
  const [own, ...others] = generations;
  const next = state.at === "Updating" ? others.at(-1) : state.at === "Creating" ? own : undefined;
  const startedMs = state.at === "Updating" ? state.change.startedMs : record.createdMs;
  return {
    EndpointName: record.name,
    EndpointArn: record.arn,
    EndpointConfigName: own.configName,
    EndpointStatus: state.at,
    CreationTime: new Date(record.createdMs),
    LastModifiedTime: new Date(record.modifiedMs),
    ...(reason === null ? {} : { FailureReason: reason }),
    ...variantsOf(own, (group, index) => ({
      ...variantOf(group, index, own, described),
      ...statusOf(own, described),
    })),
    ...captureOf(own),
    ...(deploymentConfig === null ? {} : { LastDeploymentConfig: deploymentConfig }),
    ...(own.asyncInference === undefined ? {} : { AsyncInferenceConfig: own.asyncInference }),
    ...(next === undefined
      ? {}
      : {
          PendingDeploymentSummary: {
            EndpointConfigName: next.configName,
            ...variantsOf(next, (group, index) => ({
              ...variantOf(group, index, next, described),
              ...(group.plan.variant.ServerlessConfig === undefined
                ? { InstanceType: group.plan.variant.InstanceType }
                : {}),
              ...statusOf(next, described),
            })),
            StartTime: new Date(startedMs),
          },
        }),
  };
}

/** Returns the production variants, and the shadow variants separately if there are any. */
function variantsOf<Told>({ variants }: Generation, report: (group: VariantGroup, index: number) => Told) {
  const reported = variants.map((group, index) => ({
    isShadow: !isProductionGroup(group),
    told: report(group, index),
  }));
  const [production, shadows] = [false, true].map((desired) =>
    reported.filter(({ isShadow }) => isShadow === desired).map((each) => each.told),
  );
  return {
    ProductionVariants: production ?? [],
    ...(shadows === undefined || shadows.length === 0 ? {} : { ShadowProductionVariants: shadows }),
  };
}

function variantOf(
  { plan, settled, observed }: VariantGroup,
  index: number,
  generation: Generation,
  { record, inServiceCounts }: EndpointDescription,
) {
  const { variant, model } = plan;
  const desired = finalSize(record, generation, index) ?? settled;
  const inServiceCount = inServiceCounts.get(groupKey(generation.number, variant.VariantName)) ?? 0;
  const { ServerlessConfig: serverless } = variant;
  const sizes =
    serverless === undefined
      ? { CurrentInstanceCount: inServiceCount, DesiredInstanceCount: desired.instanceCount }
      : {
          CurrentInstanceCount: 0,
          CurrentServerlessConfig: serverlessConfigOf(serverless, observed),
          ...(isSame(observed, desired) ? {} : { DesiredServerlessConfig: serverlessConfigOf(serverless, desired) }),
        };
  return {
    VariantName: variant.VariantName,
    DeployedImages: model.containers.map(({ Image: image }) => ({
      SpecifiedImage: image,
      ResolvedImage: image,
      ResolutionTime: new Date(record.createdMs),
    })),
    CurrentWeight: observed.weight,
    DesiredWeight: desired.weight,
    ...sizes,
    ...(variant.ManagedInstanceScaling === undefined ? {} : { ManagedInstanceScaling: variant.ManagedInstanceScaling }),
    ...(variant.RoutingConfig === undefined ? {} : { RoutingConfig: variant.RoutingConfig }),
  };
}

function serverlessConfigOf({ MemorySizeInMB }: ServerlessConfig, { concurrency }: GroupSize) {
  const { max = 0, provisioned = 0 } = concurrency ?? {};
  const kept = provisioned === 0 ? {} : { ProvisionedConcurrency: provisioned };
  return { MemorySizeInMB, MaxConcurrency: max, ...kept };
}

const isSame = ({ concurrency: one }: GroupSize, { concurrency: other }: GroupSize) =>
  one?.max === other?.max && one?.provisioned === other?.provisioned;

/** Returns the capture settings, which apply to all requests of the generation. */
function captureOf({ dataCapture: config }: Generation): Pick<Described, "DataCaptureConfig"> {
  if (config === undefined) return {};
  const isOn = config.EnableCapture !== false;
  return {
    DataCaptureConfig: {
      EnableCapture: isOn,
      CaptureStatus: isOn ? "Started" : "Stopped",
      CurrentSamplingPercentage: config.InitialSamplingPercentage,
      DestinationS3Uri: config.DestinationS3Uri,
      // The platform has no KMS keys, but clients require the member.
      KmsKeyId: "",
    },
  };
}

/**
 * Returns the instance count that a variant will have after the change in progress. Returns undefined if no change is
 * in progress or the change removes the variant.
 */
function finalSize({ state }: EndpointRecord, { number }: Generation, index: number) {
  if (state.at !== "Updating" && state.at !== "RollingBack") return undefined;
  const last = state.change.steps.at(-1)?.generations.find((each) => each.number === number);
  return last === undefined || last.trafficShare === 0 ? undefined : last.sizes[index];
}

/** Returns the VariantStatus of the variants of a generation. */
function statusOf(generation: Generation, { record }: EndpointDescription) {
  const { state, generations } = record;
  const status = (Status: string, StatusMessage: string, startMs: number) => ({
    VariantStatus: [{ Status, StatusMessage, StartTime: new Date(startMs) }],
  });
  if (state.at === "Creating") return status("Creating", "The instances are being started.", record.modifiedMs);
  if (state.at === "Deleting") return status("Deleting", "The instances are being stopped.", record.modifiedMs);
  if (state.at !== "Updating" && state.at !== "RollingBack") return {};
  const { stepIndex, steps, bakesUntilMs } = state.change;
  const which = `step ${stepIndex + 1} of ${steps.length}`;
  const share = currentStep(record)?.generations.find(({ number }) => number === generation.number)?.trafficShare ?? 0;
  if (bakesUntilMs !== null) {
    return status("Baking", `It gets ${Math.round(share * 100)} % of the requests, ${which}.`, record.modifiedMs);
  }
  const isOwn = generation === generations[0];
  return status(isOwn ? "Updating" : "Creating", `Instances are being started, ${which}.`, record.modifiedMs);
}
