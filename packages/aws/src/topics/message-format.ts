import { unreachable } from "@galatea/base";
import type { SignatureVersion } from "./topic.ts";

export interface MessageAttribute {
  readonly Type: string;
  readonly Value: string;
}

/** The message for a subscription's endpoint, without the fields that depend on the time of sending. */
export type TopicMessage =
  | {
      readonly type: "Notification";
      readonly messageId: string;
      readonly topicArn: string;
      readonly subject: string | null;
      readonly text: string;
      readonly timestampMs: number;
      readonly attributes: Readonly<Record<string, MessageAttribute>>;
    }
  | {
      readonly type: "SubscriptionConfirmation" | "UnsubscribeConfirmation";
      readonly messageId: string;
      readonly topicArn: string;
      readonly text: string;
      readonly timestampMs: number;
      readonly token: string;
    };

/** The URLs that a message contains. */
export interface MessageLinks {
  readonly certificateUrl: string;
  readonly subscribeUrl: (topicArn: string, token: string) => string;
  readonly unsubscribeUrl: (subscriptionArn: string) => string;
}

export type Sign = (text: string, version: SignatureVersion) => string;

export interface MessageFormat {
  readonly subscriptionArn: string;
  readonly version: SignatureVersion;
  readonly links: MessageLinks;
  readonly sign: Sign;
}

export interface FormattedMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const timestamp = (ms: number) => new Date(ms).toISOString();

/**
 * Returns the HTTP request that SNS sends for a message, with the field names, field order and signature that SNS
 * documents.
 */
export function formatMessage(
  message: TopicMessage,
  writing: MessageFormat & { readonly isRaw: boolean; readonly contentType: string },
): FormattedMessage {
  const { subscriptionArn, isRaw, contentType } = writing;
  const isNotification = message.type === "Notification";
  const headers = {
    "x-amz-sns-message-type": message.type,
    "x-amz-sns-message-id": message.messageId,
    "x-amz-sns-topic-arn": message.topicArn,
    ...(message.type === "SubscriptionConfirmation" ? {} : { "x-amz-sns-subscription-arn": subscriptionArn }),
    ...(isRaw && isNotification ? { "x-amz-sns-rawdelivery": "true" } : {}),
    "content-type": contentType,
    "user-agent": "Amazon Simple Notification Service Agent",
  };
  const body = isRaw && isNotification ? message.text : JSON.stringify(document(message, writing), null, 2);
  return { headers, body };
}

function document(message: TopicMessage, writing: MessageFormat): object {
  const { version, links, sign, subscriptionArn } = writing;
  const { type, messageId, topicArn, text, timestampMs } = message;
  const signed = {
    Timestamp: timestamp(timestampMs),
    SignatureVersion: version,
    Signature: sign(textToSign(message, links), version),
    SigningCertURL: links.certificateUrl,
  };
  const first = { Type: type, MessageId: messageId };
  switch (message.type) {
    case "Notification": {
      const { subject, attributes } = message;
      return {
        ...first,
        TopicArn: topicArn,
        ...(subject === null ? {} : { Subject: subject }),
        Message: text,
        ...signed,
        UnsubscribeURL: links.unsubscribeUrl(subscriptionArn),
        ...(Object.keys(attributes).length === 0 ? {} : { MessageAttributes: attributes }),
      };
    }
    case "SubscriptionConfirmation":
    case "UnsubscribeConfirmation":
      return {
        ...first,
        Token: message.token,
        TopicArn: topicArn,
        Message: text,
        SubscribeURL: links.subscribeUrl(topicArn, message.token),
        ...signed,
      };
    default:
      return unreachable(message);
  }
}

/** Returns the text to sign: field names and values, sorted by name, each on a line of its own. */
export function textToSign(message: TopicMessage, links: MessageLinks): string {
  const { type, messageId, topicArn, text, timestampMs } = message;
  const common = {
    Message: text,
    MessageId: messageId,
    Timestamp: timestamp(timestampMs),
    TopicArn: topicArn,
    Type: type,
  };
  const own =
    message.type === "Notification"
      ? message.subject === null
        ? {}
        : { Subject: message.subject }
      : { SubscribeURL: links.subscribeUrl(topicArn, message.token), Token: message.token };
  return Object.entries({ ...common, ...own })
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}\n${value}\n`)
    .join("");
}
