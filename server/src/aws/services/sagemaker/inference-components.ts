import {
  invalid,
  parseS3Uri,
  refusedVariable,
  resolveImage,
  unsupportedImageText,
  type ComponentRecord,
  type ComponentSpecAsked,
  type ComponentUpdate,
  type ContainerDefinition,
  type Hosting,
} from "../../../hosting/index.ts";
import type { SagemakerInputs, SagemakerOperations } from "../../spec/gen/sagemaker.ts";
import { refuseMembers, type CallContext } from "../../wire/index.ts";
import { askerOf } from "./askers.ts";
import { questionOf, tokenOf } from "./listings.ts";
import { refusedComponentMembers, refusedComponentUpdateMembers, refusedSpecMembers } from "./refused-members.ts";
import { arnOf, type SageMakerRows } from "./rows.ts";

const mebi = 2 ** 20;

type Spec = SagemakerInputs["InferenceComponentSpecification"];

type Changes =
  | "CreateInferenceComponent"
  | "UpdateInferenceComponent"
  | "UpdateInferenceComponentRuntimeConfig"
  | "DeleteInferenceComponent";
type Questions = "DescribeInferenceComponent" | "ListInferenceComponents";

const resource = (input: { readonly InferenceComponentName: string }, context: CallContext) =>
  arnOf("inference-component", input.InferenceComponentName, context);

export function inferenceComponentOperations(hosting: Hosting): Pick<SageMakerRows, Changes | Questions> {
  return { ...changes(hosting), ...questions(hosting) };
}

function changes({ components }: Hosting): Pick<SageMakerRows, Changes> {
  return {
    CreateInferenceComponent: {
      action: "sagemaker:CreateInferenceComponent",
      resource,
      refuses: refusedComponentMembers,
      async handle(input, context) {
        if (input.Specification === undefined) throw invalid("Specification must be given.");
        const spec = askedSpec(input.Specification);
        const record = await components.create({
          name: input.InferenceComponentName,
          endpointName: input.EndpointName,
          variantName: input.VariantName ?? null,
          spec,
          copyCount: input.RuntimeConfig?.CopyCount ?? 1,
          owner: ownerOf(context),
          tags: input.Tags ?? [],
        });
        return { InferenceComponentArn: record.arn };
      },
    },
    UpdateInferenceComponent: {
      action: "sagemaker:UpdateInferenceComponent",
      resource,
      refuses: refusedComponentUpdateMembers,
      async handle(input, context) {
        const { arn } = await components.update({
          name: input.InferenceComponentName,
          owner: ownerOf(context),
          spec: input.Specification === undefined ? null : askedSpec(input.Specification),
          copyCount: input.RuntimeConfig?.CopyCount ?? null,
          rolling: rollingOf(input.DeploymentConfig?.RollingUpdatePolicy),
        });
        return { InferenceComponentArn: arn };
      },
    },
    UpdateInferenceComponentRuntimeConfig: {
      action: "sagemaker:UpdateInferenceComponentRuntimeConfig",
      resource,
      async handle({ InferenceComponentName: name, DesiredRuntimeConfig: { CopyCount: copyCount } }, context) {
        const asked = { name, owner: ownerOf(context), spec: null, copyCount, rolling: null };
        const { arn } = await components.update(asked);
        return { InferenceComponentArn: arn };
      },
    },
    DeleteInferenceComponent: {
      action: "sagemaker:DeleteInferenceComponent",
      resource,
      async handle({ InferenceComponentName: name }, context) {
        await components.delete(name, ownerOf(context));
        return {};
      },
    },
  };
}

function questions({ components }: Hosting): Pick<SageMakerRows, Questions> {
  return {
    DescribeInferenceComponent: {
      action: "sagemaker:DescribeInferenceComponent",
      resource,
      async handle({ InferenceComponentName: name }, context) {
        await components.news(name, askerOf(context));
        const record = await components.find(name, ownerOf(context));
        return described(record, components.inServiceCount(name), context);
      },
    },
    ListInferenceComponents: {
      action: "sagemaker:ListInferenceComponents",
      resource: () => "*",
      async handle(input, context) {
        const { EndpointNameEquals: endpoint, VariantNameEquals: variant } = input;
        const isWanted = ({ endpointName, variantName }: ComponentRecord) =>
          (endpoint === undefined || endpointName.toLowerCase() === endpoint.toLowerCase()) &&
          (variant === undefined || variantName === variant);
        const { page, hasMore } = await components.list(questionOf(input), isWanted, context.turn);
        const rows = page.map((each) => ({
          InferenceComponentName: each.name,
          InferenceComponentArn: each.arn,
          EndpointName: each.endpointName,
          EndpointArn: arnOf("endpoint", each.endpointName, context),
          VariantName: each.variantName,
          InferenceComponentStatus: each.state.at,
          CreationTime: new Date(each.createdMs),
          LastModifiedTime: new Date(each.modifiedMs),
        }));
        return { InferenceComponents: rows, ...tokenOf(page, hasMore) };
      },
    },
  };
}

const ownerOf = ({ region, accountId }: CallContext) => ({ region, accountId });

function askedSpec(spec: Spec): ComponentSpecAsked {
  refuseMembers(spec, refusedSpecMembers, { code: "ValidationException", of: " of an inference component" });
  const { ModelName, Container, ComputeResourceRequirements: needs, StartupParameters: startup = {} } = spec;
  const { MinMemoryRequiredInMb: min = 0, MaxMemoryRequiredInMb: max } = needs ?? {};
  if (max !== undefined && max < min) {
    throw invalid(`MaxMemoryRequiredInMb (${max}) cannot be less than MinMemoryRequiredInMb (${min}).`);
  }
  return {
    modelName: ModelName ?? null,
    container: Container === undefined ? null : containerOf(Container),
    claim:
      needs === undefined
        ? null
        : {
            cpuCores: needs.NumberOfCpuCoresRequired ?? 0,
            acceleratorCount: needs.NumberOfAcceleratorDevicesRequired ?? 0,
            memoryBytes: min * mebi,
          },
    memoryBytesMax: max === undefined ? null : max * mebi,
    strategy: spec.SchedulingConfig?.PlacementStrategy ?? null,
    startSeconds: startup.ContainerStartupHealthCheckTimeoutInSeconds ?? null,
    downloadSeconds: startup.ModelDataDownloadTimeoutInSeconds ?? null,
    request: { ...spec },
  };
}

function containerOf(container: NonNullable<Spec["Container"]>): ContainerDefinition {
  const { Image: image, ArtifactUrl: url, Environment: environment = {} } = container;
  if (image === undefined) throw invalid("Image must be given for the container.");
  if (resolveImage(image) === null) throw invalid(unsupportedImageText(image));
  if (url !== undefined && parseS3Uri(url) === null) throw invalid(`Could not find model data at ${url}.`);
  for (const [name, value] of Object.entries(environment)) {
    const refusal = refusedVariable(name, value);
    if (refusal !== null) throw invalid(refusal);
  }
  return { Image: image, Environment: environment, ...(url === undefined ? {} : { ModelDataUrl: url }) };
}

function rollingOf(
  policy:
    | NonNullable<SagemakerInputs["UpdateInferenceComponentInput"]["DeploymentConfig"]>["RollingUpdatePolicy"]
    | undefined,
): ComponentUpdate["rolling"] {
  if (policy === undefined) return null;
  const sizeOf = ({ Type, Value }: typeof policy.MaximumBatchSize) =>
    ({ Type: Type === "COPY_COUNT" ? "INSTANCE_COUNT" : Type, Value }) as const;
  const { MaximumBatchSize, RollbackMaximumBatchSize, WaitIntervalInSeconds, MaximumExecutionTimeoutInSeconds } =
    policy;
  return {
    batch: sizeOf(MaximumBatchSize),
    rollbackBatch: RollbackMaximumBatchSize === undefined ? null : sizeOf(RollbackMaximumBatchSize),
    waitMs: WaitIntervalInSeconds * 1000,
    limitMs: MaximumExecutionTimeoutInSeconds === undefined ? null : MaximumExecutionTimeoutInSeconds * 1000,
  };
}

function described(
  record: ComponentRecord,
  currentCount: number,
  context: CallContext,
): SagemakerOperations["DescribeInferenceComponent"]["output"] {
  const { state, specs, copyCount } = record;
  const [spec] = specs;
  const [container] = spec.model.containers;
  const reason = state.at === "Failed" ? state.reason : state.at === "InService" ? state.lastFailure : null;
  const { Container: _asked, ModelName: _name, ...rest } = spec.request;
  const image = container?.Image;
  return {
    InferenceComponentName: record.name,
    InferenceComponentArn: record.arn,
    EndpointName: record.endpointName,
    EndpointArn: arnOf("endpoint", record.endpointName, context),
    VariantName: record.variantName,
    ...(reason === null ? {} : { FailureReason: reason }),
    Specification: {
      ...rest,
      ...(spec.isNamed
        ? { ModelName: spec.model.name }
        : {
            Container: {
              DeployedImage: {
                SpecifiedImage: image,
                ResolvedImage: image,
                ResolutionTime: new Date(record.createdMs),
              },
              ArtifactUrl: container?.ModelDataUrl,
              Environment: container?.Environment,
            },
          }),
    },
    RuntimeConfig: {
      DesiredCopyCount: "goal" in state ? state.goal.copyCount : copyCount,
      CurrentCopyCount: currentCount,
    },
    CreationTime: new Date(record.createdMs),
    LastModifiedTime: new Date(record.modifiedMs),
    InferenceComponentStatus: state.at,
  };
}
