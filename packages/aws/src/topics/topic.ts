import { AwsError } from "@galatea/base";

export type SignatureVersion = "1" | "2";

/** A topic, to which messages are published and endpoints subscribe. */
export interface Topic {
  readonly arn: string;
  readonly name: string;
  readonly accountId: string;
  readonly createdMs: number;
  readonly displayName: string;
  readonly signatureVersion: SignatureVersion;
  /** The policy document of the request; null: SNS's default policy. */
  readonly deliveryPolicy: string | null;
  /** The settings for logging deliveries; null: deliveries are not logged. */
  readonly feedback: DeliveryFeedback | null;
}

/**
 * Settings for logging deliveries to CloudWatch Logs. A role enables logging. The role's permissions are not evaluated.
 */
export interface DeliveryFeedback {
  readonly successRole: string | null;
  /** Percentage of successful deliveries that are logged. */
  readonly successSampleRate: number;
  readonly failureRole: string | null;
}

/** The part of a message that a filter policy applies to. */
export type FilterScope = "MessageAttributes" | "MessageBody";

/** The filter of a subscription, as in its request. An empty policy accepts every message. */
export interface FilterText {
  readonly policy: string;
  readonly scope: FilterScope;
}

export type DeliveryProtocol = "http" | "https";

export type SubscriptionState =
  /** The endpoint has received the token and has not confirmed it yet. */
  | { readonly at: "pending"; readonly token: string; readonly untilMs: number }
  | { readonly at: "confirmed"; readonly mayLeaveByLink: boolean };

export interface Subscription {
  readonly arn: string;
  readonly topicArn: string;
  readonly accountId: string;
  readonly protocol: DeliveryProtocol;
  readonly endpoint: string;
  readonly isRaw: boolean;
  /** Null for a subscription without a filter. */
  readonly filter: FilterText | null;
  /** The policy document of the request; null: the topic's policy applies. */
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

/** Returns the topic's ARN for the ARN of a topic or a subscription; null for any other ARN. */
export function topicArnOf(arn: string): string | null {
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
