import {
  parseInvokableEndpoints,
  parseObjectPrefixes,
  parseS3Uri,
  type ContainerDefinition,
} from "../definitions/index.ts";

/** The container that an access key belongs to, and the access that its model's definition grants to its code. */
export interface InstanceIdentity {
  readonly instanceId: string;
  readonly containerName: string;
  readonly endpointName: string;
  readonly accountId: string;
  readonly region: string;
  /** Log group of its containers' output. */
  readonly logGroup: string;
  /** Location of the container's models; null without model data. */
  readonly modelData: ModelDataAccess | null;
  /** Locations that the instance's agent downloads models from, for the key of the agent. */
  readonly agentModelData?: readonly ModelDataAccess[];
  /**
   * Prefixes below which its code can write and delete objects, in addition to the outputs of its endpoint: each ends
   * with a slash, or is a whole bucket.
   */
  readonly objectPrefixes: readonly AccessibleObjects[];
  /** Names of other endpoints that its code may invoke; `*` for all. */
  readonly invokableEndpoints: readonly string[];
}

export interface AccessibleObjects {
  readonly bucket: string;
  readonly key: string;
}

/** `tenants`: a prefix with archives of several tenants, none of which may read another's. */
export interface ModelDataAccess extends AccessibleObjects {
  readonly kind: "object" | "prefix" | "tenants";
}

/** The access key of one container's code. Disposal revokes it and removes its record. */
export interface IssuedCredentials extends AsyncDisposable {
  /** The variables with which the code reaches the platform. */
  readonly environment: Readonly<Record<string, string>>;
  /**
   * Resolves when the key is on disk, so that the platform's next run knows it. Rejects when the write fails; may be
   * called again.
   */
  record(): Promise<void>;
}

/** Access keys of instances. */
export interface InstanceCredentials {
  /**
   * Returns the key that was issued for this container with an equal identity, also by an earlier run; otherwise a new
   * one.
   */
  issue(identity: InstanceIdentity): IssuedCredentials;
  /** Revokes the keys of all other instances, which did not outlive the platform's previous run. */
  keepOnly(instanceIds: ReadonlySet<string>): Promise<void>;
}

/** Variables with which a model's definition configures its AWS clients; the platform then adds no credentials. */
const ownNames = ["AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"];

/**
 * Returns a container's variables: those of its model's definition, and the credentials of its instance unless the
 * definition has its own.
 */
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

/** Returns the location of a container's model data. */
export function modelDataUrl({ ModelDataUrl, ModelDataSource }: ContainerDefinition): string | null {
  return ModelDataSource?.S3DataSource?.S3Uri ?? ModelDataUrl ?? null;
}

/** Returns the access to other objects and endpoints that a container's definition grants to its code. */
export function grantedAccess(
  container: ContainerDefinition,
): Pick<InstanceIdentity, "modelData" | "objectPrefixes" | "invokableEndpoints"> {
  const { Environment: environment = {}, Mode: mode, ModelDataSource: source } = container;
  const url = modelDataUrl(container);
  const place = url === null ? null : parseS3Uri(url);
  const isPrefix = source?.S3DataSource?.S3DataType === "S3Prefix" && source.S3DataSource.CompressionType !== "Gzip";
  const kind = mode === "MultiModel" ? "tenants" : isPrefix ? "prefix" : "object";
  return {
    modelData: place === null ? null : { ...place, kind },
    objectPrefixes: parseObjectPrefixes(environment) ?? [],
    invokableEndpoints: parseInvokableEndpoints(environment) ?? [],
  };
}
