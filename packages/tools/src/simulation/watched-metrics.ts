import type { EvaluatedMetric } from "@galatea/hosting/alarms";
import type { MetricName, MetricStore } from "@galatea/base/metrics";
import { LoadError } from "./load.ts";

/** A metric that a policy, or its alarm, evaluates. */
export interface WatchedMetric {
  /** The Id in metric math, or the name of the metric if there is only one. */
  readonly id: string;
  readonly metric: MetricName;
  readonly statistic: string;
  readonly unit: string | null;
  readonly periodMs: number;
}

/** A query of GetMetricData, which was checked when the policy was created. */
interface Query {
  readonly Id: string;
  readonly Expression?: string;
  readonly Label?: string;
  readonly ReturnData?: boolean;
  readonly MetricStat?: {
    readonly Metric: {
      readonly Namespace?: string;
      readonly MetricName?: string;
      readonly Dimensions?: readonly { readonly Name: string; readonly Value: string }[];
    };
    readonly Period: number;
    readonly Stat: string;
    readonly Unit?: string;
  };
}

const minuteMs = 60_000;

/**
 * Returns the metrics that a policy or its alarm evaluates. Throws LoadError if a metric has two statistics or periods,
 * because only one can be replayed.
 */
export function watchedMetrics(watched: EvaluatedMetric): readonly WatchedMetric[] {
  if (watched.kind === "metric") return [{ ...watched, id: watched.metric.metricName }];
  const found = (watched.queries as readonly Query[]).flatMap(({ Id: id, MetricStat: stat }): WatchedMetric[] => {
    if (stat === undefined) return [];
    const { Namespace: namespace = "", MetricName: metricName = "", Dimensions = [] } = stat.Metric;
    const dimensions = Dimensions.map(({ Name: name, Value: value }) => ({ name, value }));
    const metric = { namespace, metricName, dimensions };
    return [{ id, metric, statistic: stat.Stat, unit: stat.Unit ?? null, periodMs: stat.Period * 1000 }];
  });
  const seen = new Map<string, string>();
  for (const { id, metric } of found) {
    const dimensions = metric.dimensions.map(({ name, value }) => `${name}\0${value}`).sort();
    const text = JSON.stringify([metric.namespace, metric.metricName, dimensions]);
    const before = seen.get(text);
    if (before !== undefined) {
      throw new LoadError(
        `${before} and ${id} are one metric, ${metric.metricName}: a simulation replays each metric for one Id`,
      );
    }
    seen.set(text, id);
  }
  if (found.length === 0) throw new LoadError("the policy evaluates no metric");
  return found;
}

/** Returns the title of the graph of the evaluated metric. */
export function titleOf(watched: EvaluatedMetric): string {
  if (watched.kind === "metric") return watched.metric.metricName;
  const returned = (watched.queries as readonly Query[]).find(({ ReturnData }) => ReturnData !== false);
  return returned?.Label ?? returned?.Expression ?? returned?.Id ?? "";
}

/**
 * Returns a recorder of a metric's values. It records samples for the duration `forMs`, so that the metric's statistic
 * over its period equals the given value.
 */
export function metricRecorder(series: MetricStore, watched: WatchedMetric, forMs: number) {
  const { metric, unit, periodMs, statistic } = watched;
  const key = { ...metric, unit: unit ?? "None" };
  const resolutionMs = periodMs < minuteMs ? 10_000 : minuteMs;
  const part = forMs / periodMs;
  return (value: number, timestampMs: number): void => {
    const sample =
      statistic === "Sum"
        ? { value: value * part, count: 1 }
        : statistic === "SampleCount"
          ? { value: 1, count: value * part }
          : { value, count: 1 };
    series.record(key, sample, { timestampMs, resolutionMs });
  };
}
