import { AwsError } from "@galatea/base";

/** Words of sentences that SDKs match on: "Could not find", "Cannot create already existing". */
export type HostingNoun = "model" | "endpoint configuration" | "endpoint" | "transform job" | "inference component";

export function notFound(noun: HostingNoun, arn: string): AwsError {
  return new AwsError("ValidationException", `Could not find ${noun} "${arn}".`);
}

export function alreadyExists(noun: HostingNoun, arn: string): AwsError {
  return new AwsError("ValidationException", `Cannot create already existing ${noun} "${arn}".`);
}

export function jobNotFound(name: string): AwsError {
  return new AwsError("ValidationException", `Could not find requested job with name: ${name}`);
}

export function jobExists(arn: string): AwsError {
  const text =
    "Transform job names must be unique within an AWS account and region, and a transform job with this name already exists " +
    `(${arn})`;
  return new AwsError("ResourceInUse", text);
}

export function inProgress({ arn }: { readonly arn: string }): AwsError {
  return invalid(`Cannot update in-progress endpoint "${arn}".`);
}

export function invalid(text: string): AwsError {
  return new AwsError("ValidationException", text);
}

/** Returns SageMaker's error for every quota of an account; `what` is the quota's name, `unit` what it counts. */
export function limitExceeded(
  { what, unit }: { readonly what: string; readonly unit: string },
  { limit, used, wanted }: { readonly limit: number; readonly used: number; readonly wanted: number },
): AwsError {
  const text =
    `The account-level service limit '${what}' is ${limit} ${unit}, with current utilization of ${used} ${unit} ` +
    `and a request delta of ${wanted} ${unit}. Please use fewer, or delete what is no longer needed.`;
  return new AwsError("ResourceLimitExceeded", text);
}

/** Memory of draining instances: it is freed when their requests have ended, and at the latest at a known time. */
export interface DrainingMemory {
  /** The owner, as named in the error text. */
  readonly of: string;
  readonly bytes: number;
  readonly untilMs: number;
}

const mebi = 2 ** 20;
const namesMax = 3;

/**
 * Returns the error for nodes without enough memory: it says how much is missing, how to need less, and how much
 * draining instances will free.
 */
export function memoryMissing(
  bytes: { readonly limit: number; readonly used: number; readonly wanted: number },
  draining: readonly DrainingMemory[],
): AwsError {
  const limit = Math.floor(bytes.limit / mebi);
  const [used, wanted] = [Math.ceil(bytes.used / mebi), Math.ceil(bytes.wanted / mebi)];
  const { code, message } = limitExceeded({ what: "Memory of the nodes", unit: "MiB" }, { limit, used, wanted });
  const text =
    `${message} A model counts with what it took before, or else with the size of its data. ` +
    `${used + wanted - limit} MiB are missing: fewer instances, a lower GALATEA_MODEL_MEMORY_BYTES in the ` +
    "Environment of the model's containers, or deleting other endpoints and transform jobs would free it.";
  return new AwsError(code, text + drainingText(draining, bytes.used + bytes.wanted - bytes.limit));
}

interface UnplacedInstance {
  readonly memoryBytes: number;
  /** The shortage on the node that comes closest. */
  readonly shortage: string;
}

/** Returns the error for an instance that is larger than each node. */
export function noNodeLargeEnough({ memoryBytes, shortage }: UnplacedInstance): AwsError {
  const text =
    `No node is large enough for an instance of ${Math.ceil(memoryBytes / mebi)} MiB: ${shortage}. A lower GALATEA_MODEL_MEMORY_BYTES in the ` +
    "Environment of the model's containers or a larger node would be enough.";
  return new AwsError("ResourceLimitExceeded", text);
}

/** Returns the error for an instance for which the nodes have enough memory in total, but no single node has. */
export function noNodeWithCapacity({ memoryBytes, shortage }: UnplacedInstance): AwsError {
  const text =
    `The nodes have enough free memory together, but none can hold an instance of ${Math.ceil(memoryBytes / mebi)} MiB: ${shortage}. ` +
    "Instances do not move between nodes: fewer instances, a lower GALATEA_MODEL_MEMORY_BYTES in the Environment of the model's containers, " +
    "or deleting other endpoints and transform jobs on one node would free enough.";
  return new AwsError("ResourceLimitExceeded", text);
}

function drainingText(draining: readonly DrainingMemory[], missingBytes: number): string {
  if (draining.length === 0) return "";
  const bytes = draining.reduce((sum, each) => sum + each.bytes, 0);
  const names = draining.slice(0, namesMax).map(({ of }) => of);
  if (draining.length > namesMax) names.push(`${draining.length - namesMax} more`);
  const until = new Date(Math.max(...draining.map(({ untilMs }) => untilMs))).toISOString();
  return (
    ` ${Math.ceil(bytes / mebi)} MiB of the utilization are freed when draining instances have ended (${names.join(", ")}), ` +
    `at the latest at ${until}${bytes >= missingBytes ? ": retry then." : "."}`
  );
}
