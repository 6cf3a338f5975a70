import type { EvaluatedMetric } from "@galatea/hosting/alarms";
import { unreachable } from "@galatea/base";
import type { MetricStore } from "@galatea/base/metrics";
import { LoadError, type Load } from "./load.ts";
import { recordedMetrics, type Recorded } from "./recorded-metrics.ts";
import { metricRecorder, watchedMetrics } from "./watched-metrics.ts";

/** The source of the values of the metrics that a policy evaluates. */
export type MetricSource =
  /** A planned load. `metricPerLoad` is the metric's value for one request per second on a single instance. */
  | { readonly kind: "planned"; readonly load: Load; readonly metricPerLoad: number }
  | ({ readonly kind: "recorded" } & Recorded);

/**
 * A time step, with its instances in service. `timeMs` is the time since the start, `nowMs` is the time of the clock.
 */
export interface FedTick {
  readonly timeMs: number;
  readonly nowMs: number;
  readonly running: number;
}

export interface MetricFeed {
  readonly durationMs: number;
  /** Records the metric values of a step. Returns the total load of all instances. */
  record(tick: FedTick): number;
}

export interface FeedOptions {
  readonly watched: EvaluatedMetric;
  readonly series: MetricStore;
  readonly tickMs: number;
}

/** Creates the feed. Throws LoadError if the source does not contain the metrics that the policy evaluates. */
export function metricFeed(source: MetricSource, options: FeedOptions): MetricFeed {
  switch (source.kind) {
    case "planned":
      return plannedFeed(source, options);
    case "recorded":
      return recordedFeed(source, options);
    default:
      return unreachable(source);
  }
}

function plannedFeed(
  { load, metricPerLoad }: MetricSource & { readonly kind: "planned" },
  { watched, series, tickMs }: FeedOptions,
): MetricFeed {
  const metrics = watchedMetrics(watched);
  const [metric] = metrics;
  if (metric === undefined || metrics.length > 1) {
    const ids = metrics.map(({ id }) => id).join(", ");
    throw new LoadError(
      `a plan is for one metric, but the policy evaluates ${ids}: use --series FILE with a column for each`,
    );
  }
  const countsRequests = metric.metric.metricName.startsWith("Invocations");
  // In each step, the metric is each instance's share of the requests.
  const record = metricRecorder(series, metric, countsRequests ? metric.periodMs : tickMs);
  return {
    durationMs: load.durationMs,
    record({ timeMs, nowMs, running }) {
      const requestCount = load.at(timeMs);
      const share = running === 0 ? 0 : requestCount / running;
      // Without requests, no sample is recorded.
      if (!countsRequests) record(share * metricPerLoad, nowMs);
      else if (share > 0) record((share * tickMs) / 1000, nowMs);
      return requestCount;
    },
  };
}

function recordedFeed(
  recorded: MetricSource & { readonly kind: "recorded" },
  { watched, series, tickMs }: FeedOptions,
): MetricFeed {
  const { durationMs, metrics } = recordedMetrics(watchedMetrics(watched), recorded);
  const fed = metrics.map((each) => ({ each, record: metricRecorder(series, each.metric, tickMs) }));
  return {
    durationMs,
    record({ timeMs, nowMs, running }) {
      let requestCount: number | null = null;
      for (const { each, record } of fed) {
        if (each.kind === "instances") {
          record(running, nowMs);
          continue;
        }
        const value = each.at(timeMs);
        requestCount ??= value;
        if (value === null) continue;
        if (each.kind === "total") record(value, nowMs);
        else if (running > 0) record(value / running, nowMs);
      }
      return requestCount ?? 0;
    },
  };
}
