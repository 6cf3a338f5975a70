import type { SeriesRecorder } from "@galatea/base/metrics";
import type { OpenSeries } from "../series/index.ts";

/** Units of the metrics of an endpoint's queue, with the service's spellings and the dimension EndpointName. */
const backlogUnits = {
  ApproximateBacklogSize: "Count",
  ApproximateBacklogSizePerInstance: "Count",
  ApproximateAgeOfOldestRequest: "Seconds",
  HasBacklogWithoutCapacity: "Count",
} as const;

/** Units of the metrics of requests, with the dimensions EndpointName and VariantName. */
const requestUnits = {
  InvocationsProcessed: "Count",
  InvocationFailures: "Count",
  ExpiredRequests: "Count",
  TimeInBacklog: "Milliseconds",
  TotalProcessingTime: "Milliseconds",
  RequestDownloadFailures: "Count",
  RequestDownloadLatency: "Microseconds",
  ResponseUploadFailures: "Count",
  ResponseUploadLatency: "Microseconds",
  NotificationFailures: "Count",
} as const;

export type RequestMetric = keyof typeof requestUnits;

/** The size of a queue at one moment. */
export interface Backlog {
  /** Number of requests that wait or run. */
  readonly requestCount: number;
  readonly instanceCount: number;
  readonly oldestAgeMs: number;
}

/** The metrics of one endpoint's queue. */
export class AsyncMetrics {
  readonly #open: OpenSeries;
  readonly #endpoint: string;
  readonly #series = new Map<string, SeriesRecorder>();

  constructor(open: OpenSeries, endpoint: string) {
    this.#open = open;
    this.#endpoint = endpoint;
  }

  backlog({ requestCount, instanceCount, oldestAgeMs }: Backlog): void {
    this.#backlog("ApproximateBacklogSize", requestCount);
    // The metric is undefined without an instance: policies on it are woken by HasBacklogWithoutCapacity.
    if (instanceCount > 0) this.#backlog("ApproximateBacklogSizePerInstance", requestCount / instanceCount);
    this.#backlog("ApproximateAgeOfOldestRequest", oldestAgeMs / 1000);
    this.#backlog("HasBacklogWithoutCapacity", requestCount > 0 && instanceCount === 0 ? 1 : 0);
  }

  record(variant: string, metric: RequestMetric, value: number): void {
    this.#recorder(metric, requestUnits[metric], variant).record(value);
  }

  #backlog(metric: keyof typeof backlogUnits, value: number): void {
    this.#recorder(metric, backlogUnits[metric], null).record(value);
  }

  #recorder(metricName: string, unit: string, variant: string | null): SeriesRecorder {
    const key = `${metricName} ${variant ?? ""}`;
    const found = this.#series.get(key);
    if (found !== undefined) return found;
    const own = [{ name: "EndpointName", value: this.#endpoint }];
    const dimensions = variant === null ? own : [...own, { name: "VariantName", value: variant }];
    const opened = this.#open({ namespace: "AWS/SageMaker", metricName, dimensions, unit });
    this.#series.set(key, opened);
    return opened;
  }
}
