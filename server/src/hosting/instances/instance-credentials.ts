import type { ContainerDefinition } from "../definitions/index.ts";

/** Whose credentials an instance's are. */
export interface InstanceIdentity {
  readonly instanceId: string;
  readonly endpointName: string;
  readonly accountId: string;
  readonly region: string;
  /** Where what its containers print goes. */
  readonly logGroup: string;
  /** The one object or prefix that the instance's models come from; null without model data. */
  readonly modelDataUrl: string | null;
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
