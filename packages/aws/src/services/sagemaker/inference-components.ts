import {
  validationError,
  parseS3Uri,
  type ComponentRecord,
  type ComponentSpec,
  type RequestedComponentSpec,
  type ComponentUpdate,
  type ContainerDefinition,
  type Hosting,
} from "@galatea/hosting";
import type { SagemakerInputs, SagemakerOperations } from "../../spec/gen/sagemaker.ts";
import { rejectUnsupportedMembers, type CallContext } from "../../wire/index.ts";
import { checkImage, checkVariable } from "./container-images.ts";
import { listQueryOf, listingToken } from "./listings.ts";
import { unsupportedSpecMembers } from "./unsupported-members.ts";
import { resourceArnOf, type SageMakerRows } from "./rows.ts";
import { delayWaiter } from "./waiters.ts";

const mebi = 2 ** 20;

type Described = SagemakerOperations["DescribeInferenceComponent"]["output"];
type Spec = SagemakerInputs["InferenceComponentSpecification"];

const resource = (input: { readonly InferenceComponentName: string }, context: CallContext) =>
  resourceArnOf("inference-component", input.InferenceComponentName, context);

export function inferenceComponentOperations(hosting: Hosting) {
  return { ...changes(hosting), ...questions(hosting) };
}

function changes(hosting: Hosting) {
  const { components } = hosting;
  return {
    CreateInferenceComponent: {
      resource,
      async handle(input, context) {
        const spec = requestedSpecs(input, hosting);
        if (spec === null) throw validationError("Either Specification or Specifications must be given.");
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
      resource,
      async handle(input, context) {
        const { arn } = await components.update({
          name: input.InferenceComponentName,
          owner: ownerOf(context),
          spec: requestedSpecs(input, hosting),
          copyCount: input.RuntimeConfig?.CopyCount ?? null,
          rolling: rollingOf(input.DeploymentConfig),
        });
        return { InferenceComponentArn: arn };
      },
    },
    UpdateInferenceComponentRuntimeConfig: {
      resource,
      async handle({ InferenceComponentName: name, DesiredRuntimeConfig: { CopyCount: copyCount } }, context) {
        const requested = { name, owner: ownerOf(context), spec: null, copyCount, rolling: null };
        const { arn } = await components.update(requested);
        return { InferenceComponentArn: arn };
      },
    },
    DeleteInferenceComponent: {
      resource,
      async handle({ InferenceComponentName: name }, context) {
        await components.delete(name, ownerOf(context));
        return {};
      },
    },
  } satisfies Partial<SageMakerRows>;
}

function questions({ components }: Hosting) {
  return {
    DescribeInferenceComponent: {
      resource,
      async handle({ InferenceComponentName: name }, context) {
        await delayWaiter(context, (wait) => components.waitUntilStable(name, wait));
        const record = await components.find(name, ownerOf(context));
        return described(record, components.inServiceCount(name), context);
      },
    },
    ListInferenceComponents: {
      async handle(input, context) {
        const { EndpointNameEquals: endpoint, VariantNameEquals: variant } = input;
        const isDesired = ({ endpointName, variantName }: ComponentRecord) =>
          (endpoint === undefined || endpointName.toLowerCase() === endpoint.toLowerCase()) &&
          (variant === undefined || variantName === variant);
        const { page, hasMore } = await components.list(
          listQueryOf("ListInferenceComponents", input),
          isDesired,
          context.nextTick,
        );
        const rows = page.map((each) => ({
          InferenceComponentName: each.name,
          InferenceComponentArn: each.arn,
          EndpointName: each.endpointName,
          EndpointArn: resourceArnOf("endpoint", each.endpointName, context),
          VariantName: each.variantName,
          InferenceComponentStatus: each.state.at,
          CreationTime: new Date(each.createdMs),
          LastModifiedTime: new Date(each.modifiedMs),
        }));
        return { InferenceComponents: rows, ...listingToken("ListInferenceComponents", input, { page, hasMore }) };
      },
    },
  } satisfies Partial<SageMakerRows>;
}

const ownerOf = ({ region, accountId }: CallContext) => ({ region, accountId });

/**
 * Returns the requested specifications; null if the request has none. Each of several specifications is for a different
 * instance type.
 */
function requestedSpecs(
  {
    Specification: one,
    Specifications: several = [],
  }: {
    readonly Specification?: Spec;
    readonly Specifications?: readonly Spec[];
  },
  { runsImages }: Hosting,
): RequestedComponentSpec | null {
  if (several.length === 0) return one === undefined ? null : requestedSpec(one, runsImages);
  if (one !== undefined) throw validationError("Specification and Specifications cannot be used together.");
  const types = several.map(({ InstanceType: type }) => type);
  if (several.length > 1 && types.includes(undefined)) {
    throw validationError("InstanceType must be given in each of several Specifications.");
  }
  const twice = types.find((type, index) => types.indexOf(type) !== index);
  if (twice !== undefined) throw validationError(`Specifications have the InstanceType ${twice} twice.`);
  const [first, ...others] = several.map((spec) => requestedSpec(spec, runsImages));
  return first === undefined ? null : { ...first, others };
}

function requestedSpec(spec: Spec, runsImages: boolean): RequestedComponentSpec {
  if (spec.BaseInferenceComponentName !== undefined) {
    throw validationError(
      "BaseInferenceComponentName of an inference component is not supported: no container of this platform loads adapters for the model " +
        "that it serves, as SageMaker's containers for large models do. Merge the adapter into the weights of its base, and create an inference " +
        "component of the merged model.",
    );
  }
  rejectUnsupportedMembers(spec, unsupportedSpecMembers, {
    code: "ValidationException",
    of: " of an inference component",
  });
  const { ModelName, Container, ComputeResourceRequirements: needs, StartupParameters: startup = {} } = spec;
  const { MinMemoryRequiredInMb: min = 0, MaxMemoryRequiredInMb: max } = needs ?? {};
  if (max !== undefined && max < min) {
    throw validationError(`MaxMemoryRequiredInMb (${max}) cannot be less than MinMemoryRequiredInMb (${min}).`);
  }
  return {
    modelName: ModelName ?? null,
    container: Container === undefined ? null : containerOf(Container, runsImages),
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
    ...(spec.InstanceType === undefined ? {} : { instanceType: spec.InstanceType }),
    request: { ...spec },
  };
}

function containerOf(container: NonNullable<Spec["Container"]>, runsImages: boolean): ContainerDefinition {
  const { Image: image, ArtifactUrl: url, Environment: environment = {} } = container;
  if (image === undefined) throw validationError("Image must be given for the container.");
  checkImage(image, runsImages);
  if (url !== undefined && parseS3Uri(url) === null) throw validationError(`Could not find model data at ${url}.`);
  for (const [name, value] of Object.entries(environment)) checkVariable(name, value, image);
  return { Image: image, Environment: environment, ...(url === undefined ? {} : { ModelDataUrl: url }) };
}

function rollingOf(
  config: SagemakerInputs["UpdateInferenceComponentInput"]["DeploymentConfig"],
): ComponentUpdate["rolling"] {
  if (config === undefined) return null;
  const { RollingUpdatePolicy: policy, AutoRollbackConfiguration: rollback } = config;
  const alarms = (rollback?.Alarms ?? []).flatMap(({ AlarmName: name }) => name ?? []);
  const sizeOf = ({ Type, Value }: typeof policy.MaximumBatchSize) =>
    ({ Type: Type === "COPY_COUNT" ? "INSTANCE_COUNT" : Type, Value }) as const;
  const { MaximumBatchSize, RollbackMaximumBatchSize, WaitIntervalInSeconds, MaximumExecutionTimeoutInSeconds } =
    policy;
  return {
    batch: sizeOf(MaximumBatchSize),
    rollbackBatch: RollbackMaximumBatchSize === undefined ? null : sizeOf(RollbackMaximumBatchSize),
    waitMs: WaitIntervalInSeconds * 1000,
    limitMs: MaximumExecutionTimeoutInSeconds === undefined ? null : MaximumExecutionTimeoutInSeconds * 1000,
    alarms,
    request: { ...config },
  };
}

function described(record: ComponentRecord, currentCount: number, context: CallContext): Described {
  const { state, specs, copyCount, lastDeployment } = record;
  const [spec] = specs;
  const reason = state.at === "Failed" ? state.reason : state.at === "InService" ? state.lastFailure : null;
  return {
    InferenceComponentName: record.name,
    InferenceComponentArn: record.arn,
    EndpointName: record.endpointName,
    EndpointArn: resourceArnOf("endpoint", record.endpointName, context),
    VariantName: record.variantName,
    ...(reason === null ? {} : { FailureReason: reason }),
    ...specificationsOf(record, spec),
    RuntimeConfig: {
      DesiredCopyCount: "goal" in state ? state.goal.copyCount : copyCount,
      CurrentCopyCount: currentCount,
    },
    ...(lastDeployment === undefined ? {} : { LastDeploymentConfig: lastDeployment }),
    CreationTime: new Date(record.createdMs),
    LastModifiedTime: new Date(record.modifiedMs),
    InferenceComponentStatus: state.at,
  };
}

/**
 * Returns the current specification. If the request had several, returns all of them; the current one replaces the
 * requested one for its instance type.
 */
function specificationsOf(
  record: ComponentRecord,
  spec: ComponentSpec,
): Pick<Described, "Specification" | "Specifications"> {
  const { Container: _asked, ModelName: _name, ...rest } = spec.request;
  const [container] = spec.model.containers;
  const runs = spec.isNamed
    ? { ModelName: spec.model.name }
    : { Container: describeContainer({ ...container, ArtifactUrl: container?.ModelDataUrl }, record) };
  const own = { ...rest, ...runs };
  if (spec.alternatives === undefined) return { Specification: own };
  const reported = spec.alternatives.map((requested: Spec) => {
    if (requested.InstanceType === spec.request["InstanceType"]) return own;
    const { Container: other, ...others } = requested;
    return { ...others, ...(other === undefined ? {} : { Container: describeContainer(other, record) }) };
  });
  return { Specifications: reported };
}

function describeContainer(
  reported: { readonly [Member in "Image" | "ArtifactUrl"]?: string | undefined } & Pick<
    ContainerDefinition,
    "Environment"
  >,
  { createdMs }: ComponentRecord,
) {
  const { Image: image, ArtifactUrl, Environment } = reported;
  return {
    DeployedImage: { SpecifiedImage: image, ResolvedImage: image, ResolutionTime: new Date(createdMs) },
    ArtifactUrl,
    Environment,
  };
}
