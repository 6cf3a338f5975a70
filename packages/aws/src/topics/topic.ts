import { AwsError } from "@galatea/base";

export type SignatureVersion = "1" | "2";

/** What somebody publishes to, and others subscribe to. */
export interface Topic {
  readonly arn: string;
  readonly name: string;
  readonly accountId: string;
  readonly createdMs: number;
  readonly displayName: string;
  readonly signatureVersion: SignatureVersion;
  /** As it was said; null for SNS's own. */
  readonly deliveryPolicy: string | null;
  /** Which deliveries are logged; null for none. */
  readonly feedback: DeliveryFeedback | null;
}

/** By the roles that SNS would write to CloudWatch Logs with. */
export interface DeliveryFeedback {
  readonly successRole: string | null;
  /** In percent. */
  readonly successSampleRate: number;
  readonly failureRole: string | null;
}

/** What of a message a filter looks at. */
export type FilterScope = "MessageAttributes" | "MessageBody";

/** A subscription's filter, as it was said; an empty policy lets everything through. */
export interface FilterText {
  readonly policy: string;
  readonly scope: FilterScope;
}

export type DeliveryProtocol = "http" | "https";

export type SubscriptionState =
  /** Its endpoint has been sent the token, and has not come back with it. */
  | { readonly at: "pending"; readonly token: string; readonly untilMs: number }
  | { readonly at: "confirmed"; readonly mayLeaveByLink: boolean };

export interface Subscription {
  readonly arn: string;
  readonly topicArn: string;
  readonly accountId: string;
  readonly protocol: DeliveryProtocol;
  readonly endpoint: string;
  readonly isRaw: boolean;
  /** Null for one that gets every message. */
  readonly filter: FilterText | null;
  /** As it was said; null for its topic's. */
  readonly deliveryPolicy: string | null;
  readonly state: SubscriptionState;
}

export interface TopicLimits {
  readonly topicsMax: number;
  readonly subscriptionsMax: number;
  readonly perTopicMax: number;
}

export const topicLimits: TopicLimits = { topicsMax: 1000, subscriptionsMax: 5000, perTopicMax: 200 };

export const confirmationMs = 3 * 24 * 3_600_000;

export function topicArn(name: string, owner: { readonly region: string; readonly accountId: string }): string {
  return `arn:aws:sns:${owner.region}:${owner.accountId}:${name}`;
}

/** The topic that a subscription's ARN, or one of its own, names; null for what is neither. */
export function topicOfArn(arn: string): string | null {
  return (
    /^(arn:aws[a-z-]*:sns:[a-z0-9-]*:\d{12}:[A-Za-z0-9_-]{1,256}(?:\.fifo)?)(?::[0-9a-f-]{36})?$/.exec(arn)?.[1] ?? null
  );
}

export function invalidParameter(text: string): AwsError {
  return new AwsError("InvalidParameter", `Invalid parameter: ${text}`);
}

export function topicNotFound(): AwsError {
  return new AwsError("NotFound", "Topic does not exist", { statusFallback: 404 });
}

export function subscriptionNotFound(): AwsError {
  return new AwsError("NotFound", "Subscription does not exist", { statusFallback: 404 });
}
