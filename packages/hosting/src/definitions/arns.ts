export type HostingResource = "model" | "endpoint-config" | "endpoint" | "transform-job" | "inference-component";

/** The region and the account that a resource belongs to. */
export interface Owner {
  readonly region: string;
  readonly accountId: string;
}

/** Returns the ARN of a resource. As in SageMaker, it contains the name in lower case; Describe operations return the name in its original case. */
export function hostingArn(resource: HostingResource, name: string, owner: Owner): string {
  return `arn:aws:sagemaker:${owner.region}:${owner.accountId}:${resource}/${name.toLowerCase()}`;
}

/** Returns the resource type and the lower-case name of a SageMaker ARN; null for any other text. */
export function parseHostingArn(arn: string): { readonly resource: HostingResource; readonly key: string } | null {
  const match =
    /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:\d{12}:(model|endpoint-config|endpoint|transform-job|inference-component)\/(.+)$/.exec(
      arn,
    );
  if (match === null) return null;
  return { resource: match[1] as HostingResource, key: (match[2] ?? "").toLowerCase() };
}

/** Returns the record key of a name. Names are case-insensitive because ARNs are lower case. */
export function nameKey(name: string): string {
  return name.toLowerCase();
}
