import type { MetricAlarm, EvaluatedMetric } from "./alarm.ts";

export const sumMetric: Extract<EvaluatedMetric, { readonly kind: "metric" }> = {
  kind: "metric",
  metric: { namespace: "n", metricName: "m", dimensions: [] },
  statistic: "Sum",
  unit: null,
  periodMs: 60_000,
};

/**
 * Returns an alarm for tests. It enters ALARM if the sum of one minute is above ten, unless `more` changes the
 * definition.
 */
export const sumAlarm = (name: string, more: Partial<MetricAlarm> = {}): MetricAlarm => ({
  kind: "metric",
  name,
  arn: `arn:aws:cloudwatch:r:1:alarm:${name}`,
  description: null,
  actionsEnabled: true,
  actions: { OK: [], ALARM: [], INSUFFICIENT_DATA: [] },
  configuredMs: 0,
  tags: [],
  watched: sumMetric,
  threshold: 10,
  comparison: "GreaterThanThreshold",
  evaluationPeriods: 1,
  datapointsToAlarm: 1,
  hasDatapointsToAlarm: false,
  missing: null,
  ...more,
});

const { arn, description, actionsEnabled, actions, configuredMs, tags } = sumAlarm("a");

/** The fields that metric and composite alarms share. */
export const commonAlarmFields = { arn, description, actionsEnabled, actions, configuredMs, tags };
