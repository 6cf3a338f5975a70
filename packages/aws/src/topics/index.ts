/**
 * SNS topics: subscriptions, publications, and deliveries of messages to HTTP endpoints. A message is stored as a
 * document for each of its subscriptions until the endpoint has accepted it. A crash of the platform therefore loses no
 * published message. This module does not use HTTP itself: the caller passes in a `SendMessage`.
 */
export type { AttemptOutcome } from "./delivery.ts";
export { parseDeliveryPolicy } from "./delivery-policy.ts";
export { parseFilterPolicy } from "./filter-policy.ts";
export { topicMetricUnits } from "./topic-metrics.ts";
export { deliveryLimits, type SendMessage } from "./deliveries.ts";
export type { MessageAttribute, Sign } from "./message-format.ts";
export {
  invalidParameter,
  topicArn,
  topicLimits,
  topicArnOf,
  type DeliveryFeedback,
  type FilterText,
  type Subscription,
  type Topic,
} from "./topic.ts";
export { Topics } from "./topics.ts";
