import type { CounterRow, MetricFamily, MetricLabels, MetricRegistry } from "./registry.ts";

/** The times of a request, in nanoseconds, from which its metrics are computed. */
export interface RequestTimes {
  readonly queuedNs: number;
  readonly startedNs: number;
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
  readonly batchSize: number;
  readonly countsExecution: boolean;
}

export interface ModelLabels {
  readonly model: string;
  readonly version: string;
  /** The model's namespace; an empty string omits the label. */
  readonly namespace: string;
  /** `metric_tags` of the model configuration. Each label is printed with the name `_<key>`. */
  readonly tags: ReadonlyMap<string, string>;
}

export interface ModelMetricsSource extends ModelLabels {
  readonly loadSeconds: number;
  /** Returns the number of queued requests; called at each scrape. Absent for models without a queue. */
  readonly pendingCount?: () => number;
}

const failureReasons = ["REJECTED", "CANCELED", "BACKEND", "OTHER"] as const;

/** The metrics of one model version, updated at the end of each request. */
export interface ModelMetrics {
  succeeded(times: RequestTimes, durationNs: number): void;
  failed(reason: (typeof failureReasons)[number], times: Pick<RequestTimes, "countsExecution">): void;
  /** Removes the model's rows from the exposition. */
  close(): void;
}

export interface InferenceMetrics {
  open(source: ModelMetricsSource): ModelMetrics;
}

const counters = [
  ["success", "nv_inference_request_success", "Number of successful inference requests, all batch sizes"],
  ["failure", "nv_inference_request_failure", "Number of failed inference requests, all batch sizes"],
  ["inferences", "nv_inference_count", "Number of inferences performed (does not include cached requests)"],
  ["executions", "nv_inference_exec_count", "Number of model executions performed (does not include cached requests)"],
  [
    "requestUs",
    "nv_inference_request_duration_us",
    "Cumulative inference request duration in microseconds (includes cached requests)",
  ],
  [
    "queueUs",
    "nv_inference_queue_duration_us",
    "Cumulative inference queuing duration in microseconds (includes cached requests)",
  ],
  [
    "computeInputUs",
    "nv_inference_compute_input_duration_us",
    "Cumulative compute input duration in microseconds (does not include cached requests)",
  ],
  [
    "computeInferUs",
    "nv_inference_compute_infer_duration_us",
    "Cumulative compute inference duration in microseconds (does not include cached requests)",
  ],
  [
    "computeOutputUs",
    "nv_inference_compute_output_duration_us",
    "Cumulative inference compute output duration in microseconds (does not include cached requests)",
  ],
] as const;

type CounterKey = (typeof counters)[number][0];

const firstResponseBoundsMs = [100, 500, 2000, 5000];

export interface InferenceMetricsOptions {
  /** True with `--metrics-config histogram_latencies=true`. */
  readonly histogramLatencies: boolean;
}

/** Registers the inference metrics with Triton's names, types and help texts, in Triton's order. */
export function createInferenceMetrics(registry: MetricRegistry, options: InferenceMetricsOptions): InferenceMetrics {
  const families = Object.fromEntries(
    counters.map(([key, name, help]) => [key, registry.counter(name, help)]),
  ) as Readonly<Record<CounterKey, MetricFamily<CounterRow>>>;
  const pending = registry.gauge(
    "nv_inference_pending_request_count",
    "Instantaneous number of pending requests awaiting execution per-model.",
  );
  const loadSeconds = registry.gauge("nv_model_load_duration_secs", "Model load time in seconds");
  const firstResponse = options.histogramLatencies
    ? registry.histogram(
        "nv_inference_first_response_histogram_ms",
        "Duration from request to first response in milliseconds",
        firstResponseBoundsMs,
      )
    : null;
  return {
    open(source) {
      const labels = labelsOf(source);
      const rows = Object.fromEntries(
        counters.filter(([key]) => key !== "failure").map(([key]) => [key, families[key].row(labels)]),
      ) as Readonly<Record<Exclude<CounterKey, "failure">, CounterRow>>;
      const failures = new Map(failureReasons.map((reason) => [reason, families.failure.row({ ...labels, reason })]));
      pending.readFrom(labels, source.pendingCount ?? (() => 0));
      loadSeconds.row(labels).set(source.loadSeconds);
      const histogram = firstResponse?.row(labels) ?? null;
      return {
        succeeded(times, durationNs) {
          rows.success.add(1);
          rows.inferences.add(times.batchSize);
          if (times.countsExecution) rows.executions.add(1);
          rows.requestUs.add(wholeUs(durationNs));
          rows.queueUs.add(wholeUs(times.startedNs - times.queuedNs));
          rows.computeInputUs.add(wholeUs(times.computeInputNs));
          rows.computeInferUs.add(wholeUs(times.computeInferNs));
          rows.computeOutputUs.add(wholeUs(times.computeOutputNs));
          histogram?.observe(durationNs / 1e6);
        },
        failed(reason, times) {
          failures.get(reason)?.add(1);
          if (times.countsExecution) rows.executions.add(1);
        },
        close() {
          for (const [key] of counters) if (key !== "failure") families[key].remove(labels);
          for (const reason of failureReasons) families.failure.remove({ ...labels, reason });
          pending.remove(labels);
          loadSeconds.remove(labels);
          firstResponse?.remove(labels);
        },
      };
    },
  };
}

/**
 * Registers Triton's gauges of pinned memory, because perf_analyzer and dashboards expect them. They are always 0,
 * because this server has no pinned memory pool.
 */
export function createPinnedMemoryMetrics(registry: MetricRegistry): void {
  registry.gauge("nv_pinned_memory_pool_total_bytes", "Pinned memory pool total memory size, in bytes").row({});
  registry.gauge("nv_pinned_memory_pool_used_bytes", "Pinned memory pool used memory size, in bytes").row({});
}

function labelsOf({ model, version, namespace, tags }: ModelLabels): MetricLabels {
  const labels: Record<string, string> = { model, version };
  if (namespace !== "") labels["namespace"] = namespace;
  for (const [key, value] of tags) labels[`_${key}`] = value;
  return labels;
}

function wholeUs(ns: number): number {
  return ns > 0 ? Math.trunc(ns / 1000) : 0;
}
