/**
 * Topics as SNS has them: who is subscribed, what is published to them, and the messages on their way to HTTP endpoints. A message is a
 * document for each of its subscriptions until that has taken it, so nothing of what was published is lost by a platform that ends.
 * The door knows no HTTP: requests are made by the `SendMessage` it is given.
 */
export type { AttemptOutcome } from "./delivery.ts";
export { parseDeliveryPolicy } from "./delivery-policy.ts";
export { parseFilterPolicy } from "./filter-policy.ts";
export { topicMetricUnits } from "./topic-metrics.ts";
export { deliveryLimits, type SendMessage } from "./deliveries.ts";
export type { MessageAttribute, Sign } from "./message-text.ts";
export {
  invalidParameter,
  topicArn,
  topicLimits,
  topicOfArn,
  type DeliveryFeedback,
  type FilterText,
  type Subscription,
  type Topic,
} from "./topic.ts";
export { Topics } from "./topics.ts";
