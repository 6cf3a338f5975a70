import type { FilterVerdict } from "./filter-policy.ts";

/** CloudWatch's metrics of topics, with SNS's own names and units. */
export const topicMetricUnits = {
  NumberOfMessagesPublished: "Count",
  PublishSize: "Bytes",
  NumberOfNotificationsDelivered: "Count",
  NumberOfNotificationsFailed: "Count",
  NumberOfNotificationsFilteredOut: "Count",
  "NumberOfNotificationsFilteredOut-MessageAttributes": "Count",
  "NumberOfNotificationsFilteredOut-NoMessageAttributes": "Count",
  "NumberOfNotificationsFilteredOut-MessageBody": "Count",
  "NumberOfNotificationsFilteredOut-InvalidMessageBody": "Count",
} as const;

export type TopicMetric = keyof typeof topicMetricUnits;

export type RecordTopicMetric = (topicArn: string, metric: TopicMetric, value: number) => void;

/** The metrics that count a message that a filter excludes. NumberOfNotificationsFilteredOut counts it, too. */
export const filteredMetrics: Readonly<Record<Exclude<FilterVerdict, "passes">, TopicMetric>> = {
  "attributes-differ": "NumberOfNotificationsFilteredOut-MessageAttributes",
  "no-attributes": "NumberOfNotificationsFilteredOut-NoMessageAttributes",
  "body-differs": "NumberOfNotificationsFilteredOut-MessageBody",
  "no-body": "NumberOfNotificationsFilteredOut-InvalidMessageBody",
};
