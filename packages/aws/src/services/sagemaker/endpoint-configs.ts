import {
  validationError,
  parseS3Uri,
  serverlessConfigError,
  serverlessQuotaType,
  variantWeightError,
  type DataCaptureConfig,
  type Hosting,
  type ProductionVariant,
} from "@galatea/hosting";
import type { SagemakerInputs } from "../../spec/gen/sagemaker.ts";
import { rejectUnsupportedMembers, type CallContext } from "../../wire/index.ts";
import { rejectNeuronInstance } from "./neuron-instances.ts";
import {
  notSupported,
  unsupportedCaptureMembers,
  unsupportedConfigMembers,
  unsupportedVariantMembers,
} from "./unsupported-members.ts";
import { resourceArnOf, type SageMakerRows } from "./rows.ts";

const instanceTypeDefault = "ml.m5.xlarge";

export function endpointConfigOperations(hosting: Hosting) {
  const resource = (input: { readonly EndpointConfigName: string }, context: CallContext) =>
    resourceArnOf("endpoint-config", input.EndpointConfigName, context);
  return {
    CreateEndpointConfig: {
      resource,
      unsupportedMembers: unsupportedConfigMembers,
      async handle(input, context) {
        const variants = checkedVariants(input.ProductionVariants);
        checkServerless(variants);
        const shadows = checkedShadows(input, variants);
        checkShared(variants, input);
        const { Tags: tags, ...request } = input;
        const owner = { region: context.region, accountId: context.accountId };
        const dataCapture = checkedCapture(input.DataCaptureConfig);
        const capture = dataCapture === undefined ? {} : { DataCaptureConfig: dataCapture };
        const described = {
          ...request,
          ProductionVariants: variants.map(describedVariant),
          ...(shadows.length === 0 ? {} : { ShadowProductionVariants: shadows }),
          ...capture,
        };
        const { AsyncInferenceConfig: asyncInference } = input;
        if (asyncInference !== undefined) {
          checkQueued(variants, shadows.length > 0 || dataCapture?.EnableCapture === true);
        }
        const record = await hosting.catalog.createConfig({
          name: input.EndpointConfigName,
          owner,
          variants,
          ...(asyncInference === undefined ? {} : { asyncInference }),
          ...(shadows.length === 0 ? {} : { shadows }),
          ...(dataCapture === undefined ? {} : { dataCapture }),
          request: described,
          tags: tags ?? [],
        });
        return { EndpointConfigArn: record.arn };
      },
    },
    DescribeEndpointConfig: {
      resource,
      async handle(input, context) {
        const record = await hosting.catalog.config(input.EndpointConfigName, context);
        return {
          EnableNetworkIsolation: false,
          ...record.request,
          EndpointConfigName: record.name,
          EndpointConfigArn: record.arn,
          ProductionVariants: record.variants.map(describedVariant),
          CreationTime: new Date(record.createdMs),
        };
      },
    },
    DeleteEndpointConfig: {
      resource,
      async handle(input, context) {
        await hosting.catalog.deleteConfig(input.EndpointConfigName, context);
        return {};
      },
    },
  } satisfies Partial<SageMakerRows>;
}

/** Throws for variants that cannot serve asynchronous invocations. */
function checkQueued(variants: readonly ProductionVariant[], isCopied: boolean): void {
  if (variants.length > 1) throw notSupported("AsyncInferenceConfig with several production variants");
  if (variants.some(({ ServerlessConfig }) => ServerlessConfig !== undefined)) {
    throw validationError("AsyncInferenceConfig is for variants with instances, not for serverless ones.");
  }
  if (isCopied) throw notSupported("AsyncInferenceConfig with ShadowProductionVariants or DataCaptureConfig");
}

function checkedVariants(inputs: readonly SagemakerInputs["ProductionVariant"][]): readonly ProductionVariant[] {
  const variants = eachChecked(inputs);
  if (variants.every(({ InitialVariantWeight }) => InitialVariantWeight === 0)) {
    throw validationError("At least one production variant needs a weight above zero.");
  }
  return variants;
}

/**
 * Checks SageMaker's rules for shadow variants: exactly one production variant and one shadow variant, both on
 * instances, without asynchronous invocation.
 */
function checkedShadows(
  input: SagemakerInputs["CreateEndpointConfigInput"],
  variants: readonly ProductionVariant[],
): readonly ProductionVariant[] {
  const { ShadowProductionVariants: inputs = [], AsyncInferenceConfig: asyncInference } = input;
  if (inputs.length === 0) return [];
  if (inputs.length > 1 || variants.length > 1) {
    throw validationError(
      "With ShadowProductionVariants there must be one production variant and one shadow variant only.",
    );
  }
  if (asyncInference !== undefined) throw validationError("Shadow variants do not support asynchronous inference.");
  const shadows = eachChecked(inputs);
  if ([...variants, ...shadows].some(({ ServerlessConfig: config }) => config !== undefined)) {
    throw validationError("Shadow variants do not support serverless inference.");
  }
  const [shadow] = shadows;
  if (variants.some(({ VariantName: name }) => name === shadow?.VariantName)) {
    throw validationError(`The variant name "${shadow?.VariantName}" was non-unique within the request.`);
  }
  return shadows;
}

function eachChecked(inputs: readonly SagemakerInputs["ProductionVariant"][]): readonly ProductionVariant[] {
  const names = new Set<string>();
  return inputs.map((input): ProductionVariant => {
    rejectUnsupportedMembers(input, unsupportedVariantMembers, { code: "ValidationException", of: " of a variant" });
    const { VariantName: name } = input;
    if (names.has(name)) throw validationError(`The variant name "${name}" was non-unique within the request.`);
    names.add(name);
    const weight = variantWeightError(name, input.InitialVariantWeight ?? 1);
    if (weight !== null) throw validationError(weight);
    if (input.ServerlessConfig !== undefined) return serverlessVariant(input, input.ServerlessConfig);
    rejectNeuronInstance(input.InstanceType ?? instanceTypeDefault);
    const { ManagedInstanceScaling: scaling, ModelName: model = "" } = input;
    checkScaling(scaling, model);
    return {
      ...input,
      ModelName: model,
      InitialInstanceCount: input.InitialInstanceCount ?? 1,
      InstanceType: input.InstanceType ?? instanceTypeDefault,
      InitialVariantWeight: input.InitialVariantWeight ?? 1,
    };
  });
}

/** Members for variants with instances. A serverless variant must not have them. */
const instanceMembers = [
  "InstanceType",
  "InitialInstanceCount",
  "VolumeSizeInGB",
  "ManagedInstanceScaling",
  "RoutingConfig",
  "InferenceAmiVersion",
  "ContainerStartupHealthCheckTimeoutInSeconds",
  "ModelDataDownloadTimeoutInSeconds",
] as const;

function serverlessVariant(
  input: SagemakerInputs["ProductionVariant"],
  config: NonNullable<SagemakerInputs["ProductionVariant"]["ServerlessConfig"]>,
): ProductionVariant {
  const { VariantName, ModelName } = input;
  const of = `variant "${VariantName}"`;
  const value = instanceMembers.filter((member) => input[member] !== undefined);
  if (value.length > 0) {
    throw validationError(`${value.join(", ")} cannot be given for ${of}: it has a ServerlessConfig.`);
  }
  const refusal = serverlessConfigError(config);
  if (refusal !== null) throw validationError(refusal);
  if (ModelName === undefined) throw validationError(`The serverless ${of} needs a ModelName.`);
  return {
    ...input,
    ModelName,
    InitialInstanceCount: (config.ProvisionedConcurrency ?? 0) > 0 ? 1 : 0,
    InstanceType: serverlessQuotaType,
    InitialVariantWeight: input.InitialVariantWeight ?? 1,
    ServerlessConfig: config,
  };
}

/**
 * Checks a variant without a model, whose instances are shared by inference components. If one variant has no model, no
 * variant of the configuration may have one.
 */
function checkShared(
  variants: readonly ProductionVariant[],
  input: SagemakerInputs["CreateEndpointConfigInput"],
): void {
  const shared = variants.filter(({ ModelName: model }) => model === "");
  if (shared.length === 0) return;
  const names = shared.map(({ VariantName: name }) => `"${name}"`).join(", ");
  if (shared.length < variants.length) {
    throw validationError(
      `All variants or none must have a ModelName; variants without one are for inference components: ${names}.`,
    );
  }
  const beside = ["AsyncInferenceConfig", "ShadowProductionVariants", "DataCaptureConfig"] as const;
  const value = beside.filter((member) => input[member] !== undefined);
  if (value.length > 0) throw notSupported(`${value.join(", ")} of variants for inference components`);
  if (input.ExecutionRoleArn === undefined)
    throw validationError(`ExecutionRoleArn must be given: variants have no ModelName: ${names}.`);
}

function checkScaling(scaling: SagemakerInputs["ProductionVariant"]["ManagedInstanceScaling"], model: string): void {
  if (scaling?.Status !== "ENABLED") return;
  if (model !== "") throw notSupported("ManagedInstanceScaling of a variant with a ModelName");
  const { MinInstanceCount: min = 1, MaxInstanceCount: max } = scaling;
  if (max === undefined) throw validationError("MaxInstanceCount of ManagedInstanceScaling must be given.");
  if (min > max) throw validationError(`MinInstanceCount (${min}) cannot be more than MaxInstanceCount (${max}).`);
}

function checkServerless(variants: readonly ProductionVariant[]): void {
  if (variants.length < 2 || variants.every((variant) => variant.ServerlessConfig === undefined)) return;
  throw validationError("An endpoint with a serverless variant can have no other production variant.");
}

/** Returns a variant with the members of its request. */
function describedVariant(variant: ProductionVariant) {
  if (variant.ModelName === "") {
    const { ModelName: _model, ...described } = variant;
    return described;
  }
  if (variant.ServerlessConfig === undefined) return variant;
  const { InstanceType: _type, InitialInstanceCount: _count, ...described } = variant;
  return described;
}

/** Returns the capture settings; capturing is enabled by default. */
function checkedCapture(input: SagemakerInputs["DataCaptureConfig"] | undefined): DataCaptureConfig | undefined {
  if (input === undefined) return undefined;
  rejectUnsupportedMembers(input, unsupportedCaptureMembers, {
    code: "ValidationException",
    of: " of DataCaptureConfig",
  });
  if (parseS3Uri(input.DestinationS3Uri) === null) {
    throw validationError(`Invalid DestinationS3Uri of DataCaptureConfig: ${input.DestinationS3Uri}`);
  }
  return { ...input, EnableCapture: input.EnableCapture ?? true };
}
