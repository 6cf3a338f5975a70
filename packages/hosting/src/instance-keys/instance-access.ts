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

/** Facts about the platform that decide an access, in addition to the identity of the instance. */
export interface AccessContext {
  /** Names of endpoints that the code of every instance may invoke; `*` for all. */
  readonly invokableEndpoints: readonly string[];
  /** Returns whether an object is model data of any model. */
  readonly isModelData: (object: ObjectName) => boolean;
  /** Returns the innermost prefix of outputs that contains an object, with its owners; null where none does. */
  readonly outputLocation: (
    object: ObjectName,
  ) => { readonly prefix: string; readonly owners: ReadonlySet<string> } | null;
}

/** Returns whether code in an instance has an access. */
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

/** Allows the instance's own endpoint, and endpoints that its model's Environment or the operator names. */
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
 * Allows reads of the instance's own model data (unless it is a prefix of several tenants; an agent reads these too), and of objects that are neither model data nor outputs of
 * another endpoint. Allows writes
 * only below a prefix of its model's Environment or an output location of its endpoint. When both an output location and such a prefix contain
 * the object, the longer one decides: a prefix around another endpoint's outputs grants no access to them. Nobody may write model data,
 * because its writer could run code as another endpoint.
 */
function isObjectAccessAllowed(
  { object, writes }: Extract<InstanceAccess, { readonly to: "object" }>,
  { modelData, agentModelData = [], endpointName, objectPrefixes }: InstanceIdentity,
  { isModelData, outputLocation }: AccessContext,
): boolean {
  if (agentModelData.some((place) => isPartOf(object, place))) return !writes;
  if (modelData !== null && isPartOf(object, modelData)) return !writes && modelData.kind !== "tenants";
  if (isModelData(object)) return false;
  const named = objectPrefixes.filter((prefix) => isBelow(object, prefix));
  const namedLength = Math.max(-1, ...named.map(({ key }) => key.length));
  const place = outputLocation(object);
  if (place !== null && namedLength < place.prefix.length) return place.owners.has(endpointName);
  return !writes || namedLength >= 0;
}

const containersLog = /^\/aws\/sagemaker\/(?:Endpoints|InferenceComponents|TransformJobs)(?:\/|$)/;

/** Returns whether a log group belongs to containers of other owners. All transform jobs share one group, which no instance may use. */
function isOthersLog(group: string, { logGroup, endpointName }: InstanceIdentity): boolean {
  if (!containersLog.test(group)) return false;
  const isOwn = group === logGroup || group === `/aws/sagemaker/Endpoints/${endpointName}`;
  return group === "/aws/sagemaker/TransformJobs" || !isOwn;
}

/** Returns whether an object is this model data, or below its prefix. */
function isPartOf(object: ObjectName, place: ModelDataAccess): boolean {
  return place.kind === "object" ? object.bucket === place.bucket && object.key === place.key : isBelow(object, place);
}

const isBelow = ({ bucket, key }: ObjectName, prefix: ObjectName) =>
  bucket === prefix.bucket && key.startsWith(prefix.key);
