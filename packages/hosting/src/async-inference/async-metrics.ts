import type { SeriesRecorder } from "@galatea/base/metrics";
import type { OpenSeries } from "../series/index.ts";

/** Units of SageMaker's queue metrics, which have the dimension EndpointName. */
const backlogUnits = {
  ApproximateBacklogSize: "Count",
  ApproximateBacklogSizePerInstance: "Count",
  ApproximateAgeOfOldestRequest: "Seconds",
  HasBacklogWithoutCapacity: "Count",
} as const;

/** Units of SageMaker's metrics of asynchronous requests, which have the dimensions EndpointName and VariantName. */
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

export type AsyncRequestMetric = keyof typeof requestUnits;

/** A sample of an endpoint's queue. */
export interface QueueBacklog {
  /** Number of requests that wait or run. */
  readonly requestCount: number;
  readonly instanceCount: number;
  readonly oldestAgeMs: number;
}

/** Records the CloudWatch metrics of one asynchronous endpoint. */
export class AsyncMetrics {
  readonly #open: OpenSeries;
  readonly #endpoint: string;
  readonly #series = new Map<string, SeriesRecorder>();

  constructor(open: OpenSeries, endpoint: string) {
    this.#open = open;
    this.#endpoint = endpoint;
  }

  backlog({ requestCount, instanceCount, oldestAgeMs }: QueueBacklog): void {
    this.#backlog("ApproximateBacklogSize", requestCount);
    // Not recorded without an instance, as in SageMaker: scaling from zero uses HasBacklogWithoutCapacity instead.
    if (instanceCount > 0) this.#backlog("ApproximateBacklogSizePerInstance", requestCount / instanceCount);
    this.#backlog("ApproximateAgeOfOldestRequest", oldestAgeMs / 1000);
    this.#backlog("HasBacklogWithoutCapacity", requestCount > 0 && instanceCount === 0 ? 1 : 0);
  }

  record(variant: string, metric: AsyncRequestMetric, value: number): void {
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
