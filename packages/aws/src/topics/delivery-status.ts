import { createHash } from "node:crypto";
import type { AttemptOutcome, Delivery } from "./delivery.ts";
import type { Topic } from "./topic.ts";

/** The result of delivering a message to one subscription. */
export interface EndedDelivery {
  readonly delivery: Delivery;
  readonly endpoint: string;
  readonly isDelivered: boolean;
  /** The outcome of the last attempt; null for a message without an attempt. */
  readonly outcome: AttemptOutcome | null;
  /** The reason why the message was discarded; null for a delivered message. */
  readonly why: string | null;
}

/** A line for a log group about a delivery. */
export interface StatusLine {
  readonly group: string;
  readonly text: string;
}

/**
 * Returns SNS's log line for a delivery; null if it is not logged. All failures are logged, and the configured
 * percentage of successes. `chance` is a random number in [0, 1).
 */
export function deliveryStatus(
  topic: Topic,
  ended: EndedDelivery,
  at: { readonly nowMs: number; readonly chance: number },
): StatusLine | null {
  const { feedback } = topic;
  if (feedback === null || ended.delivery.message.type !== "Notification") return null;
  const { successRole, successSampleRate, failureRole } = feedback;
  const isDesired = ended.isDelivered
    ? successRole !== null && at.chance * 100 < successSampleRate
    : failureRole !== null;
  if (!isDesired) return null;
  const { delivery, endpoint, outcome, isDelivered, why } = ended;
  const { messageId, topicArn, text, timestampMs } = delivery.message;
  const status = outcome?.kind === "answered" ? outcome.status : 0;
  const document = {
    notification: {
      messageMD5Sum: createHash("md5").update(text).digest("hex"),
      messageId,
      topicArn,
      timestamp: timeText(timestampMs),
    },
    delivery: {
      deliveryId: `${messageId}:${delivery.subscriptionArn.slice(delivery.subscriptionArn.lastIndexOf(":") + 1)}`,
      destination: endpoint,
      providerResponse: why ?? `the endpoint responded with status ${status}`,
      dwellTimeMs: Math.max(0, at.nowMs - timestampMs),
      attempts: delivery.attemptCount + (outcome === null ? 0 : 1),
      statusCode: status,
    },
    status: isDelivered ? "SUCCESS" : "FAILURE",
  };
  const [, , , region = "", account = "", name = ""] = topicArn.split(":");
  return { group: `sns/${region}/${account}/${name}${isDelivered ? "" : "/Failure"}`, text: JSON.stringify(document) };
}

const timeText = (ms: number) => new Date(ms).toISOString().replace("T", " ").replace("Z", "");
