import { AwsError } from "../../../base/index.ts";
import { invalid } from "../../../hosting/index.ts";
import type { TargetKey } from "../../../scaling/index.ts";

/** How Application Auto Scaling names what is scaled. */
export interface NamedTarget {
  readonly ServiceNamespace: string;
  readonly ResourceId: string;
  readonly ScalableDimension: string;
}

const namespace = "sagemaker";
const variantDimension = "sagemaker:variant:DesiredInstanceCount";

/** Throws AwsError for what is not scaled here. */
export function variantOf(named: NamedTarget): TargetKey & { readonly endpoint: string; readonly variant: string } {
  const { ResourceId: resourceId, ScalableDimension: dimension } = named;
  const found = /^endpoint\/([^/]+)\/variant\/([^/]+)$/.exec(resourceId);
  checkNamespace(named);
  if (dimension.startsWith("sagemaker:") && dimension !== variantDimension) {
    throw invalid(`The scalable dimension ${dimension} is not supported by this platform yet; ${variantDimension} is.`);
  }
  if (dimension !== variantDimension || found === null) {
    throw invalid("Unsupported service namespace, resource type or scalable dimension");
  }
  const [, endpoint, variant] = found as unknown as readonly [string, string, string];
  return { resourceId, dimension, endpoint, variant };
}

export function checkNamespace({ ServiceNamespace }: { readonly ServiceNamespace: string }): void {
  if (ServiceNamespace !== namespace) {
    throw invalid("Unsupported service namespace, resource type or scalable dimension");
  }
}

export function noTarget(named: NamedTarget): AwsError {
  const { ResourceId, ScalableDimension } = named;
  return new AwsError(
    "ObjectNotFoundException",
    `No scalable target found for service namespace: ${namespace}, resource ID: ${ResourceId}, scalable dimension: ${ScalableDimension}`,
  );
}
