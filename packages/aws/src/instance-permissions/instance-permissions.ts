import type { AccessContext, InstanceAccess, InstanceKeys, ObjectName } from "@galatea/hosting/instance-keys";
import { isAccessAllowed } from "@galatea/hosting/instance-keys";
import type { Credential } from "../signing/index.ts";
import type { PermissionCheck } from "../wire/index.ts";

/** Actions that every instance may perform on every resource. */
const freeActions: ReadonlySet<string> = new Set([
  "sts:GetCallerIdentity",
  "sagemaker:CallWithBearerToken",
  "logs:DescribeLogGroups",
  "s3:ListBuckets",
  "s3:HeadBucket",
  "s3:GetBucketLocation",
  "s3:GetBucketVersioning",
  "s3:ListObjects",
  "s3:ListObjectsV2",
]);

/**
 * Actions that depend on their resource; null for the ARN of another kind of resource. Instances cannot create, change
 * or delete models and endpoints, assume roles, or remove buckets. Copies and bulk deletions are also excluded, because
 * each object must be named in its own request to be checked.
 */
const accesses: Readonly<Record<string, (arn: string) => InstanceAccess | null>> = {
  "sagemaker:InvokeEndpoint": (arn) => ({ to: "endpoint", name: arn.replace(/^.*?:endpoint\//s, "") }),
  "cloudwatch:PutMetricData": (arn) => ({ to: "metric-namespace", name: arn.replace(/^.*?:namespace\//s, "") }),
  "logs:CreateLogGroup": logGroup,
  "logs:CreateLogStream": logGroup,
  "logs:PutLogEvents": logGroup,
  "logs:DescribeLogStreams": logGroup,
  "s3:GetObject": readObject,
  "s3:HeadObject": readObject,
  "s3:GetObjectTagging": readObject,
  "s3:PutObject": writtenObject,
  "s3:DeleteObject": writtenObject,
  "s3:CreateMultipartUpload": writtenObject,
  "s3:UploadPart": writtenObject,
  "s3:CompleteMultipartUpload": writtenObject,
  "s3:AbortMultipartUpload": writtenObject,
  "s3:ListParts": writtenObject,
};

function logGroup(arn: string): InstanceAccess {
  return { to: "log-group", name: /^arn:aws:logs:[^:]*:[^:]*:log-group:([^:]*)/.exec(arn)?.[1] ?? "" };
}

function readObject(arn: string): InstanceAccess | null {
  const object = objectOf(arn);
  return object === null ? null : { to: "object", object, writes: false };
}

function writtenObject(arn: string): InstanceAccess | null {
  const object = objectOf(arn);
  return object === null ? null : { to: "object", object, writes: true };
}

/** Returns null for an ARN that is not an object's. */
function objectOf(arn: string): ObjectName | null {
  const [, bucket, key] = /^arn:aws:s3:::([^/]+)\/(.+)$/s.exec(arn) ?? [];
  return bucket === undefined || key === undefined ? null : { bucket, key };
}

/** The permissions of instances' access keys. Every other key belongs to the owner and allows everything. */
export interface InstancePermissions {
  /** Returns undefined for a key that is not an instance's. */
  credential(accessKeyId: string): Credential | undefined;
  /** Returns the endpoint or transform job whose code has the key; null for a key that is not an instance's. */
  findWriter(accessKeyId: string): string | null;
  /** Decides by the action and resource that a service declares for the operation. */
  readonly isAllowed: PermissionCheck;
  /**
   * Returns a test that hides the objects of a listing that the caller cannot read. Returns null for a key that is not
   * an instance's: every object is shown.
   */
  readonly isObjectListed: (accessKeyId: string | null) => ((object: ObjectName) => boolean) | null;
  /** Returns whether a listing shows a log group. An instance does not see log groups of other owners' containers. */
  readonly isGroupListed: (accessKeyId: string | null, group: string) => boolean;
}

export function instancePermissions(keys: Pick<InstanceKeys, "find">, facts: AccessContext): InstancePermissions {
  const allows = (accessKeyId: string | null, access: InstanceAccess) => {
    const key = accessKeyId === null ? undefined : keys.find(accessKeyId);
    return key === undefined || isAccessAllowed(key.identity, access, facts);
  };
  return {
    credential(accessKeyId) {
      const key = keys.find(accessKeyId);
      if (key === undefined) return undefined;
      const { secretAccessKey, identity } = key;
      return { accessKeyId, secretAccessKey, sessionToken: null, accountId: identity.accountId, expiresMs: null };
    },
    findWriter: (accessKeyId) => keys.find(accessKeyId)?.identity.endpointName ?? null,
    isAllowed(accessKeyId, action, resource) {
      const key = keys.find(accessKeyId);
      if (key === undefined || freeActions.has(action)) return true;
      const access = Object.hasOwn(accesses, action) ? (accesses[action]?.(resource) ?? null) : null;
      return access !== null && isAccessAllowed(key.identity, access, facts);
    },
    isObjectListed(accessKeyId) {
      const key = accessKeyId === null ? undefined : keys.find(accessKeyId);
      if (key === undefined) return null;
      return (object) => isAccessAllowed(key.identity, { to: "object", object, writes: false }, facts);
    },
    isGroupListed: (accessKeyId, name) => allows(accessKeyId, { to: "log-group", name }),
  };
}
