import { AwsError } from "@galatea/base";

/** The resource names in SageMaker's error texts, which SDKs match on: "Could not find model", "Cannot create already existing endpoint". */
export type HostingResourceNoun =
  | "model"
  | "endpoint configuration"
  | "endpoint"
  | "transform job"
  | "inference component";

export function resourceNotFound(noun: HostingResourceNoun, arn: string): AwsError {
  return new AwsError("ValidationException", `Could not find ${noun} "${arn}".`);
}

export function resourceAlreadyExists(noun: HostingResourceNoun, arn: string): AwsError {
  return new AwsError("ValidationException", `Cannot create already existing ${noun} "${arn}".`);
}

export function transformJobNotFound(name: string): AwsError {
  return new AwsError("ValidationException", `Could not find requested job with name: ${name}`);
}

export function transformJobAlreadyExists(arn: string): AwsError {
  const text =
    "Transform job names must be unique within an AWS account and region, and a transform job with this name already exists " +
    `(${arn})`;
  return new AwsError("ResourceInUse", text);
}

export function endpointInProgress({ arn }: { readonly arn: string }): AwsError {
  return validationError(`Cannot update in-progress endpoint "${arn}".`);
}

export function validationError(text: string): AwsError {
  return new AwsError("ValidationException", text);
}

/** Returns SageMaker's ResourceLimitExceeded error; `what` is the name of the quota, `unit` the unit of its numbers. */
export function quotaExceeded(
  { what, unit }: { readonly what: string; readonly unit: string },
  { limit, used, requested }: { readonly limit: number; readonly used: number; readonly requested: number },
): AwsError {
  const text =
    `The account-level service limit '${what}' is ${limit} ${unit}, with current utilization of ${used} ${unit} ` +
    `and a request delta of ${requested} ${unit}. Please use fewer, or delete what is no longer needed.`;
  return new AwsError("ResourceLimitExceeded", text);
}

/** Memory of draining instances. It becomes free when their requests have ended, at the latest at `untilMs`. */
export interface DrainingMemory {
  /** The endpoint, job or component, as named in the error text. */
  readonly owner: string;
  readonly bytes: number;
  readonly untilMs: number;
}

const mebi = 2 ** 20;
const namesMax = 3;

/**
 * Returns the error for a change that needs more memory than the nodes have. The text says how much is missing, how to
 * reduce the need, and how much draining instances will free.
 */
export function insufficientNodeMemory(
  bytes: { readonly limit: number; readonly used: number; readonly requested: number },
  draining: readonly DrainingMemory[],
): AwsError {
  const limit = Math.floor(bytes.limit / mebi);
  const [used, requested] = [Math.ceil(bytes.used / mebi), Math.ceil(bytes.requested / mebi)];
  const { code, message } = quotaExceeded({ what: "Memory of the nodes", unit: "MiB" }, { limit, used, requested });
  const text =
    `${message} A model counts with its highest measured memory, or with the size of its data if it was never measured. ` +
    `${used + requested - limit} MiB are missing: use fewer instances, set a lower GALATEA_MODEL_MEMORY_BYTES in the ` +
    "Environment of the model's containers, or delete other endpoints and transform jobs.";
  return new AwsError(code, text + drainingText(draining, bytes.used + bytes.requested - bytes.limit));
}

interface UnplacedInstance {
  readonly memoryBytes: number;
  /** The missing resources on the node with the smallest shortage, as text. */
  readonly shortage: string;
}

/** Returns the error for an instance that is larger than every node. */
export function instanceTooLarge({ memoryBytes, shortage }: UnplacedInstance): AwsError {
  const text =
    `No node is large enough for an instance of ${Math.ceil(memoryBytes / mebi)} MiB: ${shortage}. A lower GALATEA_MODEL_MEMORY_BYTES in the ` +
    "Environment of the model's containers or a larger node would be enough.";
  return new AwsError("ResourceLimitExceeded", text);
}

/** Returns the error for an instance that fits on no single node although the nodes have enough free memory in total. */
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
  const names = draining.slice(0, namesMax).map(({ owner }) => owner);
  if (draining.length > namesMax) names.push(`${draining.length - namesMax} more`);
  const until = new Date(Math.max(...draining.map(({ untilMs }) => untilMs))).toISOString();
  return (
    ` ${Math.ceil(bytes / mebi)} MiB of the utilization are freed when draining instances have ended (${names.join(", ")}), ` +
    `at the latest at ${until}${bytes >= missingBytes ? ": retry then." : "."}`
  );
}
