import { unreachable } from "@galatea/base";
import { isPlatformsNamespace } from "../definitions/index.ts";
import type { InstanceIdentity, ModelDataReach } from "../instances/index.ts";

/** An access that the code of an instance asks for. */
export type InstanceAccess =
  | { readonly to: "endpoint"; readonly name: string }
  | { readonly to: "log-group"; readonly name: string }
  | { readonly to: "metric-namespace"; readonly name: string }
  | { readonly to: "object"; readonly object: ObjectName; readonly writes: boolean };

export interface ObjectName {
  readonly bucket: string;
  readonly key: string;
}

/** What accesses are decided by beside the identity of the instance. */
export interface AccessFacts {
  /** Names of endpoints that the code of every instance may invoke; `*` for all. */
  readonly invokableEndpoints: readonly string[];
  /** Returns whether an object is model data of any model. */
  readonly isModelData: (object: ObjectName) => boolean;
  /** Returns the innermost prefix of outputs that contains an object, with its owners; null where none does. */
  readonly outputPlace: (
    object: ObjectName,
  ) => { readonly prefix: string; readonly owners: ReadonlySet<string> } | null;
}

/** Returns whether the code of an instance may have an access. */
export function mayAccess(identity: InstanceIdentity, access: InstanceAccess, facts: AccessFacts): boolean {
  switch (access.to) {
    case "endpoint":
      return mayInvoke(access.name, identity, facts);
    case "log-group":
      return !isOthersLog(access.name, identity);
    case "metric-namespace":
      return !isPlatformsNamespace(access.name);
    case "object":
      return mayReach(access, identity, facts);
    default:
      return unreachable(access);
  }
}

/** The instance's own endpoint, and those that its model's Environment or the operator names. */
function mayInvoke(endpointName: string, identity: InstanceIdentity, { invokableEndpoints }: AccessFacts): boolean {
  const name = endpointName.toLowerCase();
  const named = [identity.endpointName, ...identity.invokableEndpoints, ...invokableEndpoints];
  return named.some((each) => each === "*" || each.toLowerCase() === name);
}

/**
 * Where both an output location and a prefix of the instance's model contain the object, the longer one decides: a prefix around another
 * endpoint's outputs does not grant access to these. Model data is never written: its writer could run code as another endpoint.
 */
function mayReach(
  { object, writes }: Extract<InstanceAccess, { readonly to: "object" }>,
  { modelData, endpointName, objectPrefixes }: InstanceIdentity,
  { isModelData, outputPlace }: AccessFacts,
): boolean {
  if (modelData !== null && isPartOf(object, modelData)) return !writes && modelData.kind !== "tenants";
  if (isModelData(object)) return false;
  const named = objectPrefixes.filter((prefix) => isBelow(object, prefix));
  const namedLength = Math.max(-1, ...named.map(({ key }) => key.length));
  const place = outputPlace(object);
  if (place !== null && namedLength < place.prefix.length) return place.owners.has(endpointName);
  return !writes || namedLength >= 0;
}

const containersLog = /^\/aws\/sagemaker\/(?:Endpoints|InferenceComponents|TransformJobs)(?:\/|$)/;

/** Returns whether a log group is that of others' containers. All transform jobs share one, which no instance may use. */
function isOthersLog(group: string, { logGroup, endpointName }: InstanceIdentity): boolean {
  if (!containersLog.test(group)) return false;
  const isOwn = group === logGroup || group === `/aws/sagemaker/Endpoints/${endpointName}`;
  return group === "/aws/sagemaker/TransformJobs" || !isOwn;
}

/** Returns whether an object is the model data that was named, or below its prefix. */
function isPartOf(object: ObjectName, place: ModelDataReach): boolean {
  return place.kind === "object" ? object.bucket === place.bucket && object.key === place.key : isBelow(object, place);
}

const isBelow = ({ bucket, key }: ObjectName, prefix: ObjectName) =>
  bucket === prefix.bucket && key.startsWith(prefix.key);
