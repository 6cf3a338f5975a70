import { invokableEndpoints, objectPrefixes, parseS3Uri, type ContainerDefinition } from "../definitions/index.ts";

/** Whose credentials an instance's are. */
export interface InstanceIdentity {
  readonly instanceId: string;
  readonly endpointName: string;
  readonly accountId: string;
  readonly region: string;
  /** Where what its containers print goes. */
  readonly logGroup: string;
  /** What the container's models come from; null without model data. */
  readonly modelData: ModelDataReach | null;
  /** Below which its code writes and deletes objects, beside the outputs of its endpoint: folders, each ends with a slash or is a whole bucket. */
  readonly objectPrefixes: readonly ReachedPlace[];
  /** Names of other endpoints that its code may invoke; `*` for all. */
  readonly invokableEndpoints: readonly string[];
}

export interface ReachedPlace {
  readonly bucket: string;
  readonly key: string;
}

/** `tenants`: archives of several tenants below a prefix, of whom none may read another's. */
export interface ModelDataReach extends ReachedPlace {
  readonly kind: "object" | "prefix" | "tenants";
}

/** The variables with which an instance's code reaches the platform. Disposing ends what they allow. */
export interface IssuedCredentials extends Disposable {
  readonly environment: Readonly<Record<string, string>>;
}

export type IssueCredentials = (identity: InstanceIdentity) => IssuedCredentials;

/** Names with which a model's definition says where its AWS clients go and as whom: then none of ours are added. */
const ownNames = ["AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"];

/** A container's variables: its model's definition, and the credentials of its instance unless the definition has its own. */
export function containerEnvironment(
  { Environment: given = {}, Mode: mode }: ContainerDefinition,
  issued: IssuedCredentials,
  region: string,
): Record<string, string> {
  const isOwn = ownNames.some((name) => Object.hasOwn(given, name));
  return {
    ...(isOwn ? {} : issued.environment),
    ...given,
    AWS_REGION: region,
    AWS_DEFAULT_REGION: region,
    ...(mode === "MultiModel" ? { SAGEMAKER_MULTI_MODEL: "true" } : {}),
  };
}

/** Where a container's model data lies. */
export function modelDataUrlOf({ ModelDataUrl, ModelDataSource }: ContainerDefinition): string | null {
  return ModelDataSource?.S3DataSource?.S3Uri ?? ModelDataUrl ?? null;
}

/** What of other objects and endpoints a container's definition gives its code. */
export function reachOf(
  container: ContainerDefinition,
): Pick<InstanceIdentity, "modelData" | "objectPrefixes" | "invokableEndpoints"> {
  const { Environment: environment = {}, Mode: mode, ModelDataSource: source } = container;
  const url = modelDataUrlOf(container);
  const place = url === null ? null : parseS3Uri(url);
  const isPrefix = source?.S3DataSource?.S3DataType === "S3Prefix" && source.S3DataSource.CompressionType !== "Gzip";
  const kind = mode === "MultiModel" ? "tenants" : isPrefix ? "prefix" : "object";
  return {
    modelData: place === null ? null : { ...place, kind },
    objectPrefixes: objectPrefixes(environment) ?? [],
    invokableEndpoints: invokableEndpoints(environment) ?? [],
  };
}
