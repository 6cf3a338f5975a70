import {
  parseInvokableEndpoints,
  parseObjectPrefixes,
  parseS3Uri,
  type ContainerDefinition,
} from "../definitions/index.ts";

/**
 * The container that an access key belongs to, and the access that the model's definition grants to the container's
 * code.
 */
export interface InstanceIdentity {
  readonly instanceId: string;
  readonly containerName: string;
  readonly endpointName: string;
  readonly accountId: string;
  readonly region: string;
  /** Log group of the container's output. */
  readonly logGroup: string;
  /** Location of the container's model data; null if there is none. */
  readonly modelData: ModelDataAccess | null;
  /** Locations from which the instance's agent downloads models. Present only for the agent's key. */
  readonly agentModelData?: readonly ModelDataAccess[];
  /**
   * Prefixes below which the container's code can write and delete objects, in addition to the outputs of its endpoint.
   * Each key ends with a slash, or is empty for a whole bucket.
   */
  readonly objectPrefixes: readonly AccessibleObjects[];
  /** Names of other endpoints that the container's code may invoke; `*` for all. */
  readonly invokableEndpoints: readonly string[];
}

export interface AccessibleObjects {
  readonly bucket: string;
  readonly key: string;
}

/**
 * The location of model data. `tenants` is a prefix with archives of several tenants, whose code must not read each
 * other's archives.
 */
export interface ModelDataAccess extends AccessibleObjects {
  readonly kind: "object" | "prefix" | "tenants";
}

/** The access key of one container's code. Disposal revokes the key and deletes its record. */
export interface IssuedCredentials extends AsyncDisposable {
  /** The environment variables with which the code finds and accesses the platform. */
  readonly environment: Readonly<Record<string, string>>;
  /**
   * Resolves when the key is on disk, so that it stays valid after a restart of the platform. Rejects if the write
   * fails; the caller may retry.
   */
  record(): Promise<void>;
}

/** Issues and revokes the access keys of instances. */
export interface InstanceCredentials {
  /**
   * Returns the key that this or a previous run of the platform issued for the container with an equal identity.
   * Otherwise, returns a new key.
   */
  issue(identity: InstanceIdentity): IssuedCredentials;
  /** Revokes the keys of all other instances. These instances ended with the previous run of the platform. */
  keepOnly(instanceIds: ReadonlySet<string>): Promise<void>;
}

/**
 * Variables that configure AWS clients. If a model's definition sets one of them, the platform adds no credentials of
 * its own.
 */
const ownNames = ["AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"];

/**
 * Returns a container's environment variables: those of the model's definition, and the instance's credentials unless
 * the definition contains its own.
 */
export function containerEnvironment(
  { Environment: input = {}, Mode: mode }: ContainerDefinition,
  issued: IssuedCredentials,
  region: string,
): Record<string, string> {
  const isOwn = ownNames.some((name) => Object.hasOwn(input, name));
  return {
    ...(isOwn ? {} : issued.environment),
    ...input,
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
  const location = url === null ? null : parseS3Uri(url);
  const isPrefix = source?.S3DataSource?.S3DataType === "S3Prefix" && source.S3DataSource.CompressionType !== "Gzip";
  const kind = mode === "MultiModel" ? "tenants" : isPrefix ? "prefix" : "object";
  return {
    modelData: location === null ? null : { ...location, kind },
    objectPrefixes: parseObjectPrefixes(environment) ?? [],
    invokableEndpoints: parseInvokableEndpoints(environment) ?? [],
  };
}
