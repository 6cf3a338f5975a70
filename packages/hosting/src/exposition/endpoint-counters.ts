import {
  MetricRegistry,
  type MetricLabels,
  type ResolutionMs,
  type SeriesKey,
  type SeriesRecorder,
} from "@galatea/base/metrics";

export interface EndpointCountersOptions {
  /** Returns whether an endpoint exists. Counters of deleted endpoints are removed at the next scrape. */
  readonly exists: (endpointName: string) => boolean;
  /** Maximum number of label sets. Samples of additional label sets are dropped and counted in a separate metric. */
  readonly rowsMax: number;
}

type RecordSample = (value: number) => void;

/** A Prometheus counter or histogram that counts the samples of one metric. */
interface Instrument {
  readonly open: (labels: MetricLabels) => RecordSample;
  readonly remove: (labels: MetricLabels) => void;
}

interface LabelledEndpoint {
  readonly endpointName: string;
  readonly labels: MetricLabels;
}

/** A label set with its open series. The series are kept because a lookup by labels for each sample is slow. */
interface CountedEndpoint extends LabelledEndpoint {
  readonly rows: Map<Instrument, RecordSample>;
}

const namespace = "AWS/SageMaker";
const labelNames: ReadonlyMap<string, string> = new Map([
  ["EndpointName", "endpoint_name"],
  ["VariantName", "variant_name"],
  ["InferenceComponentName", "inference_component_name"],
]);

const counters: Readonly<Record<string, readonly [name: string, help: string]>> = {
  Invocations: ["invocations_total", "Requests to which an endpoint has responded"],
  Invocation4XXErrors: ["4xx_errors_total", "Requests with a response status of 400 to 499"],
  Invocation5XXErrors: ["5xx_errors_total", "Requests with a response status of 500 or more"],
  InvocationModelErrors: ["model_errors_total", "Requests to which the model responded with a status other than 2xx"],
  MidStreamErrors: ["stream_errors_total", "Response streams that failed after they had started"],
  InvocationsProcessed: ["async_processed_total", "Asynchronous requests that ended"],
  InvocationFailures: ["async_failures_total", "Asynchronous requests that failed"],
  ExpiredRequests: ["async_expired_total", "Asynchronous requests that expired in the queue"],
};

/** The Prometheus histograms of the metrics that are recorded in microseconds. */
const histograms: Readonly<Record<string, readonly [name: string, help: string]>> = {
  ModelLatency: ["model_latency_seconds", "Response time of containers"],
  OverheadLatency: [
    "overhead_latency_seconds",
    "Time that the platform adds to a request: its total time without the response time of its containers",
  ],
  FirstChunkLatency: ["first_chunk_latency_seconds", "Time to the first chunk of a response stream"],
};

/** Names of the CloudWatch metrics that are also counted for Prometheus. */
export const prometheusMetricNames: readonly string[] = [...Object.keys(counters), ...Object.keys(histograms)];

const boundsSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];

/**
 * Prometheus counters and histograms of endpoints since the platform's start. They count the same samples that are recorded as CloudWatch
 * metrics.
 */
export class EndpointCounters {
  readonly #options: EndpointCountersOptions;
  readonly #registry: MetricRegistry;
  readonly #instruments = new Map<string, Instrument>();
  readonly #endpoints = new Map<string, CountedEndpoint>();
  #leftOutCount = 0;

  constructor(options: EndpointCountersOptions) {
    this.#options = options;
    const registry = (this.#registry = new MetricRegistry({ rowsMax: options.rowsMax }));
    for (const [metricName, [name, help]] of Object.entries(counters)) {
      const family = registry.counter(`galatea_endpoint_${name}`, `${help}, since the platform's start.`);
      this.#instruments.set(metricName, {
        open: (labels) => {
          const row = family.row(labels);
          return (value) => row.add(value);
        },
        remove: (labels) => family.remove(labels),
      });
    }
    for (const [metricName, [name, help]] of Object.entries(histograms)) {
      const about = `${help}, since the platform's start.`;
      const family = registry.histogram(`galatea_endpoint_${name}`, about, boundsSeconds);
      this.#instruments.set(metricName, {
        open: (labels) => {
          const row = family.row(labels);
          return (microseconds) => row.observe(microseconds / 1e6);
        },
        remove: (labels) => family.remove(labels),
      });
    }
    const leftOut = registry.gauge(
      "galatea_endpoint_samples_left_out",
      "Samples that were dropped because the maximum number of label sets is reached.",
    );
    leftOut.readFrom({}, () => this.#leftOutCount);
  }

  /** Returns a recorder that counts each sample and passes it to `recorder`. Returns `recorder` itself for metrics that are not counted. */
  wrapRecorder(key: SeriesKey, recorder: SeriesRecorder): SeriesRecorder {
    const instrument = key.namespace === namespace ? this.#instruments.get(key.metricName) : undefined;
    const labelled = instrument === undefined ? null : labelledEndpoint(key);
    if (instrument === undefined || labelled === null) return recorder;
    const id = JSON.stringify(labelled.labels);
    return {
      record: (value) => {
        this.#count(instrument, this.#counted(id, labelled), value);
        recorder.record(value);
      },
    };
  }

  /** Returns all counters in Prometheus' text format. */
  prometheusText(): string {
    this.#dropDeleted();
    return this.#registry.print();
  }

  #count(instrument: Instrument, endpoint: CountedEndpoint | null, value: number): void {
    if (endpoint === null) {
      this.#leftOutCount += 1;
      return;
    }
    let record = endpoint.rows.get(instrument);
    if (record === undefined) {
      record = instrument.open(endpoint.labels);
      endpoint.rows.set(instrument, record);
    }
    record(value);
  }

  /** Returns the entry of a label set; null if the maximum number of label sets is reached. */
  #counted(id: string, labelled: LabelledEndpoint): CountedEndpoint | null {
    const known = this.#endpoints.get(id);
    if (known !== undefined) return known;
    if (this.#endpoints.size >= this.#options.rowsMax) return null;
    const counted = { ...labelled, rows: new Map<Instrument, RecordSample>() };
    this.#endpoints.set(id, counted);
    return counted;
  }

  #dropDeleted(): void {
    for (const [id, { endpointName, labels, rows }] of this.#endpoints) {
      if (this.#options.exists(endpointName)) continue;
      this.#endpoints.delete(id);
      for (const { remove } of rows.keys()) remove(labels);
    }
  }
}

/**
 * Returns the labels of a series that has the dimensions EndpointName and VariantName, and no others except
 * InferenceComponentName. Returns null for any other series: its samples are also recorded with these dimensions and
 * would be counted twice.
 */
function labelledEndpoint({ dimensions }: SeriesKey): LabelledEndpoint | null {
  const labels: Record<string, string> = {};
  let endpointName: string | null = null;
  for (const { name, value } of dimensions) {
    const label = labelNames.get(name);
    if (label === undefined) return null;
    if (name === "EndpointName") endpointName = value;
    labels[label] = value;
  }
  return endpointName === null || labels["variant_name"] === undefined ? null : { endpointName, labels };
}

/** Wraps `open`, so that the samples of the opened series are also counted for Prometheus. */
export function openCountedSeries(
  counts: EndpointCounters,
  open: (key: SeriesKey, resolutionMs?: ResolutionMs) => SeriesRecorder,
): typeof open {
  return (key, resolutionMs) => counts.wrapRecorder(key, open(key, resolutionMs));
}
