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
  /** The text of the request; null for SNS's default. */
  readonly deliveryPolicy: string | null;
  /** Which deliveries are logged; null for none. */
  readonly feedback: DeliveryFeedback | null;
}

/** Settings for logging deliveries to CloudWatch Logs. A role enables the logging; its permissions are not evaluated. */
export interface DeliveryFeedback {
  readonly successRole: string | null;
  /** Percentage. */
  readonly successSampleRate: number;
  readonly failureRole: string | null;
}

/** The part of a message that a filter reads. */
export type FilterScope = "MessageAttributes" | "MessageBody";

/** The filter of a subscription, as in its request; an empty policy lets everything pass. */
export interface FilterText {
  readonly policy: string;
  readonly scope: FilterScope;
}

export type DeliveryProtocol = "http" | "https";

export type SubscriptionState =
  /** The token was sent to the endpoint, which has not confirmed it yet. */
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
  /** The text of the request; null for the topic's policy. */
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

/** Returns the topic of a topic's or subscription's ARN; null for any other ARN. */
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
