import { unreachable } from "@galatea/base";
import { isPlatformsNamespace } from "../definitions/index.ts";
import type { InstanceIdentity, ModelDataAccess } from "../instances/index.ts";

/** An access that code in an instance requests. */
export type InstanceAccess =
  | { readonly to: "endpoint"; readonly name: string }
  | { readonly to: "log-group"; readonly name: string }
  | { readonly to: "metric-namespace"; readonly name: string }
  | { readonly to: "object"; readonly object: ObjectName; readonly writes: boolean };

export interface ObjectName {
  readonly bucket: string;
  readonly key: string;
}

/**
 * Data about the platform that determines whether an access is allowed, in addition to the identity of the instance.
 */
export interface AccessContext {
  /** Names of endpoints that the code of every instance may invoke; `*` for all. */
  readonly invokableEndpoints: readonly string[];
  /** Returns whether an object is model data of any model. */
  readonly isModelData: (object: ObjectName) => boolean;
  /**
   * Returns the longest output prefix that contains an object, with the endpoints that own it; null if there is none.
   */
  readonly outputLocation: (
    object: ObjectName,
  ) => { readonly prefix: string; readonly owners: ReadonlySet<string> } | null;
}

/** Returns whether code in an instance is allowed an access. */
export function isAccessAllowed(identity: InstanceIdentity, access: InstanceAccess, facts: AccessContext): boolean {
  switch (access.to) {
    case "endpoint":
      return isInvocationAllowed(access.name, identity, facts);
    case "log-group":
      return !isOthersLog(access.name, identity);
    case "metric-namespace":
      return !isPlatformsNamespace(access.name);
    case "object":
      return isObjectAccessAllowed(access, identity, facts);
    default:
      return unreachable(access);
  }
}

/**
 * Returns whether an endpoint is the instance's own, or is named in the Environment of the model or by the operator.
 */
function isInvocationAllowed(
  endpointName: string,
  identity: InstanceIdentity,
  { invokableEndpoints }: AccessContext,
): boolean {
  const name = endpointName.toLowerCase();
  const named = [identity.endpointName, ...identity.invokableEndpoints, ...invokableEndpoints];
  return named.some((each) => each === "*" || each.toLowerCase() === name);
}

/**
 * Returns whether an access to an object is allowed. Reads are allowed of the instance's own model data, except a
 * prefix of several tenants, which only an agent may read. Reads are also allowed of objects that are neither model
 * data nor outputs of another endpoint. Writes are allowed only below a prefix from the model's Environment, or below
 * an output location of the instance's endpoint. If both an output location and a prefix contain the object, the longer
 * one applies. A prefix that contains another endpoint's outputs therefore grants no access to them. Writes to model
 * data are never allowed, because the writer could run code as another endpoint.
 */
function isObjectAccessAllowed(
  { object, writes }: Extract<InstanceAccess, { readonly to: "object" }>,
  { modelData, agentModelData = [], endpointName, objectPrefixes }: InstanceIdentity,
  { isModelData, outputLocation }: AccessContext,
): boolean {
  if (agentModelData.some((location) => isPartOf(object, location))) return !writes;
  if (modelData !== null && isPartOf(object, modelData)) return !writes && modelData.kind !== "tenants";
  if (isModelData(object)) return false;
  const named = objectPrefixes.filter((prefix) => isBelow(object, prefix));
  const namedLength = Math.max(-1, ...named.map(({ key }) => key.length));
  const location = outputLocation(object);
  if (location !== null && namedLength < location.prefix.length) return location.owners.has(endpointName);
  return !writes || namedLength >= 0;
}

const containersLog = /^\/aws\/sagemaker\/(?:Endpoints|InferenceComponents|TransformJobs)(?:\/|$)/;

/**
 * Returns whether a log group belongs to containers of other owners. All transform jobs share one log group, which no
 * instance may use.
 */
function isOthersLog(group: string, { logGroup, endpointName }: InstanceIdentity): boolean {
  if (!containersLog.test(group)) return false;
  const isOwn = group === logGroup || group === `/aws/sagemaker/Endpoints/${endpointName}`;
  return group === "/aws/sagemaker/TransformJobs" || !isOwn;
}

/** Returns whether an object is the given model data, or is below its prefix. */
function isPartOf(object: ObjectName, location: ModelDataAccess): boolean {
  return location.kind === "object"
    ? object.bucket === location.bucket && object.key === location.key
    : isBelow(object, location);
}

const isBelow = ({ bucket, key }: ObjectName, prefix: ObjectName) =>
  bucket === prefix.bucket && key.startsWith(prefix.key);
