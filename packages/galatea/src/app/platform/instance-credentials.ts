import type { Permits } from "@galatea/aws";
import type { Hosting, InstanceIdentity, ModelDataReach } from "@galatea/hosting";
import type { InstanceKeys } from "@galatea/hosting/instance-keys";
import { isPlatformsNamespace } from "./platform-namespaces.ts";
import type { Credential } from "@galatea/aws/signing";

/**
 * What model code may do with the credentials of its instance. Nothing that makes, changes or deletes models and endpoints, lends
 * other credentials, or removes buckets. Objects are named one by one, so that each is looked at: no copies, no deletions of many.
 */
const instanceActions: ReadonlySet<string> = new Set([
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

/** On every log group but those of others' containers: what stands in theirs is what these printed, and metric filters count it. */
const logActions: ReadonlySet<string> = new Set([
  "logs:CreateLogGroup",
  "logs:CreateLogStream",
  "logs:PutLogEvents",
  "logs:DescribeLogStreams",
]);

/** Actions on objects that are neither other models' data nor other endpoints' outputs. */
const objectReads: ReadonlySet<string> = new Set(["s3:GetObject", "s3:HeadObject", "s3:GetObjectTagging"]);

/** Actions on objects below the prefixes that the instance's endpoint names, except models' data: its writer could run code as another endpoint. */
const objectWrites: ReadonlySet<string> = new Set([
  "s3:PutObject",
  "s3:DeleteObject",
  "s3:CreateMultipartUpload",
  "s3:UploadPart",
  "s3:CompleteMultipartUpload",
  "s3:AbortMultipartUpload",
  "s3:ListParts",
]);

export interface InstancePermissionsOptions {
  readonly keys: Pick<InstanceKeys, "find">;
  /** Whether an object is data of any model, and whose outputs it is among. */
  readonly hosting: () => Pick<Hosting, "isModelData" | "outputPlace">;
  /** Names of endpoints that every model's code may invoke; `*` for all. */
  readonly invokableEndpoints: readonly string[];
}

export interface InstancePermissions {
  credential(accessKeyId: string): Credential | undefined;
  /** The endpoint or transform job whose code has the key; null for keys that are no instance's. */
  writerOf(accessKeyId: string): string | null;
  /** By the actions and resources of the services' rows. True for keys that are no instance's. */
  readonly permits: Permits;
  /** Returns whether a listing shows an object to the caller with that key: objects that it cannot read are left out. */
  readonly lists: (accessKeyId: string | null, object: ObjectName) => boolean;
}

/** What the keys of instances allow. */
export function createInstancePermissions(options: InstancePermissionsOptions): InstancePermissions {
  const { keys } = options;
  return {
    credential(accessKeyId) {
      const key = keys.find(accessKeyId);
      if (key === undefined) return undefined;
      const { secretAccessKey, identity } = key;
      return { accessKeyId, secretAccessKey, sessionToken: null, accountId: identity.accountId, expiresMs: null };
    },
    writerOf: (accessKeyId) => keys.find(accessKeyId)?.identity.endpointName ?? null,
    permits(accessKeyId, action, resource) {
      const owner = keys.find(accessKeyId);
      if (owner === undefined) return true;
      if (instanceActions.has(action)) return true;
      if (action === "cloudwatch:PutMetricData") return !isPlatformsNamespace(namespaceOf(resource));
      if (logActions.has(action)) return !isOthersLog(resource, owner.identity);
      if (action === "sagemaker:InvokeEndpoint") return mayInvoke(resource, owner.identity, options.invokableEndpoints);
      const object = objectOf(resource);
      if (object === null) return false;
      if (objectReads.has(action)) return mayReach(object, owner.identity, { writes: false, ...options.hosting() });
      return objectWrites.has(action) && mayReach(object, owner.identity, { writes: true, ...options.hosting() });
    },
    lists(accessKeyId, object) {
      const owner = accessKeyId === null ? undefined : keys.find(accessKeyId);
      return owner === undefined || mayReach(object, owner.identity, { writes: false, ...options.hosting() });
    },
  };
}

/** Returns whether an instance may invoke an endpoint: its own, or one that its model's Environment or the operator names. */
function mayInvoke(arn: string, identity: InstanceIdentity, ofAll: readonly string[]): boolean {
  const name = arn.replace(/^.*?:endpoint\//s, "").toLowerCase();
  const named = [identity.endpointName, ...identity.invokableEndpoints, ...ofAll];
  return named.some((each) => each === "*" || each.toLowerCase() === name);
}

interface Reach extends Pick<Hosting, "isModelData" | "outputPlace"> {
  readonly writes: boolean;
}

/**
 * Returns whether an instance's code may read an object, or write and delete it. Where both an output location and a prefix of the instance's
 * model contain the object, the longer one decides: a prefix around another endpoint's outputs does not grant access to these.
 */
function mayReach(
  object: ObjectName,
  identity: InstanceIdentity,
  { writes, isModelData, outputPlace }: Reach,
): boolean {
  const { modelData, endpointName } = identity;
  if (modelData !== null && isPartOf(object, modelData)) return !writes && modelData.kind !== "tenants";
  if (isModelData(object)) return false;
  const named = identity.objectPrefixes.filter((prefix) => isBelow(object, prefix));
  const namedLength = Math.max(-1, ...named.map(({ key }) => key.length));
  const place = outputPlace(object);
  if (place !== null && namedLength < place.prefix.length) return place.owners.has(endpointName);
  return !writes || namedLength >= 0;
}

const containersLog = /^\/aws\/sagemaker\/(?:Endpoints|InferenceComponents|TransformJobs)(?:\/|$)/;

/** Whether the ARN is of the log group of others' containers, or of a stream in it. Transform jobs have one group together, which is nobody's. */
function isOthersLog(arn: string, { logGroup, endpointName }: InstanceIdentity): boolean {
  const group = /^arn:aws:logs:[^:]*:[^:]*:log-group:([^:]*)/.exec(arn)?.[1] ?? "";
  if (!containersLog.test(group)) return false;
  const isOwn = group === logGroup || group === `/aws/sagemaker/Endpoints/${endpointName}`;
  return group === "/aws/sagemaker/TransformJobs" || !isOwn;
}

const namespaceOf = (arn: string) => arn.replace(/^.*?:namespace\//s, "");

interface ObjectName {
  readonly bucket: string;
  readonly key: string;
}

/** Null for the ARN of anything else than an object. */
function objectOf(arn: string): ObjectName | null {
  const [, bucket, key] = /^arn:aws:s3:::([^/]+)\/(.+)$/s.exec(arn) ?? [];
  return bucket === undefined || key === undefined ? null : { bucket, key };
}

/** Whether an object is model data: the object that was named, or one below the prefix. */
function isPartOf(object: ObjectName, place: ModelDataReach): boolean {
  return place.kind === "object" ? object.bucket === place.bucket && object.key === place.key : isBelow(object, place);
}

const isBelow = ({ bucket, key }: ObjectName, prefix: ObjectName) =>
  bucket === prefix.bucket && key.startsWith(prefix.key);
