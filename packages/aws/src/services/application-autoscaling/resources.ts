import { AwsError } from "@galatea/base";
import { validationError } from "@galatea/hosting";
import type { TargetKey } from "@galatea/hosting/scaling";

/** The name of a scaled resource in Application Auto Scaling. */
export interface ScalableTargetName {
  readonly ServiceNamespace: string;
  readonly ResourceId: string;
  readonly ScalableDimension: string;
}

const namespace = "sagemaker";
/**
 * The kinds of resources that can be scaled. Each has a format of resource id, predefined metrics for target tracking,
 * and a minimum capacity.
 */
const scaledKinds = [
  {
    dimension: "sagemaker:variant:DesiredInstanceCount",
    named: /^endpoint\/([^/]+)\/variant\/([^/]+)$/,
    predefined: {
      SageMakerVariantInvocationsPerInstance: perMinute("InvocationsPerInstance"),
      SageMakerVariantConcurrentRequestsPerModelHighResolution: {
        metricName: "ConcurrentRequestsPerModel",
        statistic: "Average",
        periodMs: 10_000,
      },
    },
    dimensionNames: ["EndpointName", "VariantName"],
    capacityMin: 1,
    absent: (endpoint: string, variant: string) =>
      `There is no variant ${variant} of an endpoint ${endpoint} with instances to scale.`,
  },
  {
    dimension: "sagemaker:variant:DesiredProvisionedConcurrency",
    named: /^endpoint\/([^/]+)\/variant\/([^/]+)$/,
    predefined: {
      SageMakerVariantProvisionedConcurrencyUtilization: {
        metricName: "ServerlessProvisionedConcurrencyUtilization",
        statistic: "Average",
        periodMs: 60_000,
      },
    },
    dimensionNames: ["EndpointName", "VariantName"],
    capacityMin: 1,
    absent: (endpoint: string, variant: string) =>
      `There is no serverless variant ${variant} of an endpoint ${endpoint} to scale.`,
  },
  {
    dimension: "sagemaker:inference-component:DesiredCopyCount",
    named: /^inference-component\/([^/]+)$/,
    predefined: {
      SageMakerInferenceComponentInvocationsPerCopy: perMinute("InvocationsPerCopy"),
      SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution: {
        metricName: "ConcurrentRequestsPerCopy",
        statistic: "Average",
        periodMs: 10_000,
      },
    },
    dimensionNames: ["InferenceComponentName"],
    capacityMin: 0,
    absent: (component: string) => `There is no inference component ${component} to scale.`,
  },
] as const;

interface PredefinedMetric {
  readonly metricName: string;
  readonly statistic: string;
  readonly periodMs: number;
}

function perMinute(metricName: string): PredefinedMetric {
  return { metricName, statistic: "Sum", periodMs: 60_000 };
}

/** A resource that the platform can scale. */
export interface ScaledTarget extends TargetKey {
  /** The predefined metrics for target tracking, by type, with their series. */
  readonly tracked: {
    readonly predefined: Readonly<Record<string, PredefinedMetric>>;
    readonly dimensions: readonly { readonly name: string; readonly value: string }[];
  };
  readonly capacityMin: number;
  /** Error text for a missing resource. */
  readonly absentText: string;
}

/** Returns the resource that a request names. Throws AwsError for a resource that the platform cannot scale. */
export function resolveScaledTarget(named: ScalableTargetName): ScaledTarget {
  const { ResourceId: resourceId, ScalableDimension: dimension } = named;
  checkServiceNamespace(named);
  const kind = scaledKinds.find((each) => each.dimension === dimension);
  if (kind === undefined && dimension.startsWith("sagemaker:")) {
    const known = scaledKinds.map((each) => each.dimension).join(", ");
    throw validationError(
      `The scalable dimension ${dimension} is not supported by this platform yet. Supported: ${known}.`,
    );
  }
  const found = kind?.named.exec(resourceId) ?? null;
  if (kind === undefined || found === null) {
    throw validationError("Unsupported service namespace, resource type or scalable dimension");
  }
  const { predefined, capacityMin, dimensionNames } = kind;
  const [, first = "", second = ""] = found;
  const dimensions = dimensionNames.map((name, index) => ({ name, value: index === 0 ? first : second }));
  const tracked = { predefined, dimensions };
  return { resourceId, dimension, tracked, capacityMin, absentText: kind.absent(first, second) };
}

export function checkServiceNamespace({ ServiceNamespace }: { readonly ServiceNamespace: string }): void {
  if (ServiceNamespace !== namespace) {
    throw validationError("Unsupported service namespace, resource type or scalable dimension");
  }
}

export function targetNotFound(named: ScalableTargetName): AwsError {
  const { ResourceId, ScalableDimension } = named;
  return new AwsError(
    "ObjectNotFoundException",
    `No scalable target found for service namespace: ${namespace}, resource ID: ${ResourceId}, scalable dimension: ${ScalableDimension}`,
  );
}
