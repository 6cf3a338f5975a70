import { unreachable } from "@galatea/base";
import { invalidParameter } from "./topic.ts";

const backoffFunctions = ["linear", "arithmetic", "geometric", "exponential"] as const;
type BackoffFunction = (typeof backoffFunctions)[number];

/** The retries of a message that its endpoint has not accepted. SNS defines the names of the fields. */
export interface RetryPolicy {
  readonly minDelayTarget: number;
  readonly maxDelayTarget: number;
  readonly numRetries: number;
  /**
   * Number of immediate retries. After them follow `numMinDelayRetries` with the minimum delay, retries with growing
   * delays, and `numMaxDelayRetries` with the maximum delay.
   */
  readonly numNoDelayRetries: number;
  readonly numMinDelayRetries: number;
  readonly numMaxDelayRetries: number;
  readonly backoffFunction: BackoffFunction;
}

/** The delivery settings of one HTTP endpoint. */
export interface DeliveryPolicy {
  readonly retries: RetryPolicy;
  /** Maximum number of messages per second; null: no limit. */
  readonly receivesPerSecondMax: number | null;
  readonly contentType: string;
}

/** SNS's default policy for HTTP endpoints. */
export const defaultDeliveryPolicy: DeliveryPolicy = {
  retries: {
    minDelayTarget: 20,
    maxDelayTarget: 20,
    numRetries: 3,
    numNoDelayRetries: 0,
    numMinDelayRetries: 0,
    numMaxDelayRetries: 0,
    backoffFunction: "linear",
  },
  receivesPerSecondMax: null,
  contentType: "text/plain; charset=UTF-8",
};

/** SNS's limits on one delay, on the number of retries, and on the sum of all delays. */
const delaySecondsMax = 3600;
const retriesMax = 100;
const allSecondsMax = 3600;
const policyBytesMax = 30_720;

const contentTypes = new Set([
  "text/css",
  "text/csv",
  "text/html",
  "text/plain",
  "text/xml",
  "application/atom+xml",
  "application/json",
  "application/octet-stream",
  "application/soap+xml",
  "application/x-www-form-urlencoded",
  "application/xml",
]);

/** Returns the milliseconds until the next attempt after `attemptCount` attempts; null if no retry is left. */
export function redeliveryDelayMs(policy: RetryPolicy, attemptCount: number): number | null {
  const { numRetries, numNoDelayRetries, numMinDelayRetries, numMaxDelayRetries } = policy;
  const retry = attemptCount - 1;
  if (retry >= numRetries) return null;
  if (retry < numNoDelayRetries) return 0;
  if (retry < numNoDelayRetries + numMinDelayRetries) return 1000 * policy.minDelayTarget;
  if (retry >= numRetries - numMaxDelayRetries) return 1000 * policy.maxDelayTarget;
  const count = numRetries - numNoDelayRetries - numMinDelayRetries - numMaxDelayRetries;
  const which = retry - numNoDelayRetries - numMinDelayRetries;
  return Math.round(1000 * grown(policy, count <= 1 ? 0 : which / (count - 1)));
}

/**
 * Returns the delay at a position `way`, from 0 (minimum) to 1 (maximum). SNS documents the backoff functions only as
 * curves, so these formulas approximate them.
 */
function grown({ backoffFunction, minDelayTarget: min, maxDelayTarget: max }: RetryPolicy, way: number): number {
  switch (backoffFunction) {
    case "linear":
      return min + (max - min) * way;
    case "arithmetic":
      return min + (max - min) * way ** 2;
    case "geometric":
      return min * (max / min) ** way;
    case "exponential":
      return min + ((max - min) * (2 ** (10 * way) - 1)) / (2 ** 10 - 1);
    default:
      return unreachable(backoffFunction);
  }
}

export type PolicyLevel = "topic" | "subscription";

/**
 * The settings of a policy document; a missing setting is null. A topic's policy defines whether a subscription's own
 * policy overrides it.
 */
export interface PartialDeliveryPolicy {
  readonly retries: RetryPolicy | null;
  readonly receivesPerSecondMax: number | null;
  readonly contentType: string | null;
  readonly mayBeOverridden: boolean;
}

/** Returns the policy `said`. Settings that it does not have are those of `under`. */
export function mergeDeliveryPolicy(under: DeliveryPolicy, said: PartialDeliveryPolicy): DeliveryPolicy {
  return {
    retries: said.retries ?? under.retries,
    receivesPerSecondMax: said.receivesPerSecondMax ?? under.receivesPerSecondMax,
    contentType: said.contentType ?? under.contentType,
  };
}

const members = {
  topic: {
    retries: "defaultHealthyRetryPolicy",
    throttle: "defaultThrottlePolicy",
    request: "defaultRequestPolicy",
  },
  subscription: { retries: "healthyRetryPolicy", throttle: "throttlePolicy", request: "requestPolicy" },
} as const;

/** Parses a policy document. Throws AwsError, with `where` before its text. */
export function parseDeliveryPolicy(text: string, level: PolicyLevel, where = ""): PartialDeliveryPolicy {
  const refuse = (what: string) => invalidParameter(`${where}DeliveryPolicy: ${what}`);
  if (Buffer.byteLength(text) > policyBytesMax) throw refuse(`it is longer than ${policyBytesMax} bytes`);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw refuse("failed to parse JSON.");
  }
  const policy = objectOf(level === "topic" ? objectOf(json, refuse)["http"] : json, refuse);
  const { retries, throttle, request } = members[level];
  const known = [retries, throttle, request, "disableSubscriptionOverrides", "sicklyRetryPolicy"];
  const unknown = Object.keys(policy).find((name) => !known.includes(name));
  if (unknown !== undefined) throw refuse(`unexpected JSON member: ${unknown.slice(0, 64)}`);
  if ((policy["sicklyRetryPolicy"] ?? null) !== null) {
    throw refuse("sicklyRetryPolicy is not supported by this platform");
  }
  const { maxReceivesPerSecond: most = null } = objectOf(policy[throttle] ?? {}, refuse);
  if (most !== null && !(Number.isInteger(most) && (most as number) >= 1)) {
    throw refuse("maxReceivesPerSecond must be greater than or equal to 1");
  }
  const { headerContentType: type = null } = objectOf(policy[request] ?? {}, refuse);
  if (type !== null && !isContentType(type)) throw refuse("headerContentType is not a supported content type");
  const said = policy[retries] ?? null;
  return {
    retries: said === null ? null : retriesOf(objectOf(said, refuse), refuse),
    receivesPerSecondMax: most as number | null,
    contentType: type as string | null,
    mayBeOverridden: policy["disableSubscriptionOverrides"] !== true,
  };
}

const isContentType = (type: unknown) =>
  typeof type === "string" &&
  /^[\x20-\x7e]{1,128}$/.test(type) &&
  contentTypes.has(type.split(";")[0]?.trim().toLowerCase() ?? "");

type Refuse = (what: string) => Error;

function retriesOf(json: Readonly<Record<string, unknown>>, refuse: Refuse): RetryPolicy {
  const under = defaultDeliveryPolicy.retries;
  const unknown = Object.keys(json).find((name) => !Object.hasOwn(under, name));
  if (unknown !== undefined) throw refuse(`unexpected JSON member: ${unknown.slice(0, 64)}`);
  const number = (name: Exclude<keyof RetryPolicy, "backoffFunction">, min: number, max: number): number => {
    const value = json[name] ?? under[name];
    if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
    throw refuse(`${name} must be a whole number between ${min} and ${max}`);
  };
  const { backoffFunction = under.backoffFunction } = json;
  const found = backoffFunctions.find((each) => each === backoffFunction);
  if (found === undefined) throw refuse(`backoffFunction must be one of ${backoffFunctions.join(", ")}`);
  const policy: RetryPolicy = {
    minDelayTarget: number("minDelayTarget", 1, delaySecondsMax),
    maxDelayTarget: number("maxDelayTarget", 1, delaySecondsMax),
    numRetries: number("numRetries", 0, retriesMax),
    numNoDelayRetries: number("numNoDelayRetries", 0, retriesMax),
    numMinDelayRetries: number("numMinDelayRetries", 0, retriesMax),
    numMaxDelayRetries: number("numMaxDelayRetries", 0, retriesMax),
    backoffFunction: found,
  };
  if (policy.minDelayTarget > policy.maxDelayTarget) throw refuse("minDelayTarget must not exceed maxDelayTarget");
  const { numNoDelayRetries, numMinDelayRetries, numMaxDelayRetries, numRetries } = policy;
  if (numNoDelayRetries + numMinDelayRetries + numMaxDelayRetries > numRetries) {
    throw refuse("numRetries must be at least the sum of numNoDelayRetries, numMinDelayRetries and numMaxDelayRetries");
  }
  const delays = Array.from({ length: numRetries }, (_, retry) => redeliveryDelayMs(policy, retry + 1) ?? 0);
  if (delays.reduce((sum, each) => sum + each, 0) > 1000 * allSecondsMax) {
    throw refuse(`all delays together must not exceed ${allSecondsMax} seconds`);
  }
  return policy;
}

function objectOf(json: unknown, refuse: Refuse): Readonly<Record<string, unknown>> {
  if (typeof json === "object" && json !== null && !Array.isArray(json)) return json as Record<string, unknown>;
  throw refuse("a policy must be a JSON object");
}

/** Returns the effective policy as GetSubscriptionAttributes and GetTopicAttributes show it. */
export function effectivePolicyText(
  policy: DeliveryPolicy,
  level: PolicyLevel,
  { mayBeOverridden }: { readonly mayBeOverridden: boolean },
): string {
  const { retries, throttle, request } = members[level];
  const { receivesPerSecondMax, contentType } = policy;
  const reported = {
    [retries]: policy.retries,
    ...(receivesPerSecondMax === null ? {} : { [throttle]: { maxReceivesPerSecond: receivesPerSecondMax } }),
    [request]: { headerContentType: contentType },
  };
  if (level === "subscription") return JSON.stringify({ ...reported, sicklyRetryPolicy: null });
  return JSON.stringify({ http: { ...reported, disableSubscriptionOverrides: !mayBeOverridden } });
}
