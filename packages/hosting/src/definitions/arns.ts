export type HostingResource = "model" | "endpoint-config" | "endpoint" | "transform-job" | "inference-component";

export interface Owner {
  readonly region: string;
  readonly accountId: string;
}

/** Returns an ARN. Its resource part is the lower-cased name, as in the service; Describe returns the original case. */
export function hostingArn(resource: HostingResource, name: string, owner: Owner): string {
  return `arn:aws:sagemaker:${owner.region}:${owner.accountId}:${resource}/${name.toLowerCase()}`;
}

/** Returns the resource and the lower-cased name of a platform's ARN, null for any other. */
export function parseHostingArn(arn: string): { readonly resource: HostingResource; readonly key: string } | null {
  const match =
    /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:\d{12}:(model|endpoint-config|endpoint|transform-job|inference-component)\/(.+)$/.exec(
      arn,
    );
  if (match === null) return null;
  return { resource: match[1] as HostingResource, key: (match[2] ?? "").toLowerCase() };
}

/** Returns the key of a name: names are unique without regard to case, because ARNs are lower case. */
export function nameKey(name: string): string {
  return name.toLowerCase();
}
