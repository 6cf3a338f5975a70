import { invokableEndpoints, objectPrefixes, parseS3Uri, type ContainerDefinition } from "../definitions/index.ts";

/** The container that an access key belongs to, and what its model's definition lets its code reach. */
export interface InstanceIdentity {
  readonly instanceId: string;
  readonly containerName: string;
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

/** The access key of one container's code. Disposing ends what it allows and removes its record. */
export interface IssuedCredentials extends AsyncDisposable {
  /** The variables with which the code reaches the platform. */
  readonly environment: Readonly<Record<string, string>>;
  /** Resolves when the key is on disk, so that the platform's next run knows it. Rejects where the disk refuses; may be called again. */
  record(): Promise<void>;
}

/** Access keys of instances. */
export interface InstanceCredentials {
  /** Gives the key that was issued for this container of the instance with an equal identity, also by an earlier run; else a new one. */
  issue(identity: InstanceIdentity): IssuedCredentials;
  /** Ends the keys of all instances but these: those that did not outlive the platform's previous run. */
  keepOnly(instanceIds: ReadonlySet<string>): Promise<void>;
}

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
