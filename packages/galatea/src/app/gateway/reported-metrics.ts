import { randomUUID } from "node:crypto";
import { signRequestHeaders } from "@galatea/aws/signing";
import type { AcceptedKeys } from "@galatea/aws/owner-keys";
import { metricBatchPath, type MetricBatch, type ReportedSeries } from "@galatea/aws/metric-batches";
import { delay, TaskGroup, type Clock, type Logger } from "@galatea/base";
import type { ResolutionMs, SeriesKey, SeriesRecorder } from "@galatea/base/metrics";

export interface ReportedMetricsOptions {
  readonly leader: { readonly url: string | null };
  readonly keys: AcceptedKeys;
  readonly region: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

const reportEveryMs = 5000;
const sendMsMax = 5000;
/** Maximum number of values in a batch; more are sent in the next one. */
const valuesMax = 20_000;
/** Maximum number of batches that wait for a leader. Above it, the oldest is dropped. */
const batchesMax = 200;

interface OpenSeries {
  readonly key: SeriesKey;
  readonly resolutionMs: ResolutionMs;
  /** Number of samples of each value, by the start of their period. */
  readonly periods: Map<number, Map<number, number>>;
}

/**
 * Collects the samples of a gateway's invocations, and reports them to the leader, which stores them with its own. A
 * batch that the leader has not acknowledged is sent again with its number, so that no sample is counted twice.
 */
export class ReportedMetrics implements AsyncDisposable {
  readonly #options: ReportedMetricsOptions;
  readonly #tasks: TaskGroup;
  readonly #series = new Set<OpenSeries>();
  readonly #batches: MetricBatch[] = [];
  readonly #gateway = randomUUID();
  #number = 0;
  #valueCount = 0;

  constructor(options: ReportedMetricsOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) =>
      options.logger.error("bug: reporting metrics has stopped", { error: String(error) }),
    );
    this.#tasks.run(async (closing) => {
      for (;;) {
        await delay(options.clock, reportEveryMs, closing);
        await this.#report();
      }
    });
  }

  recorder(key: SeriesKey, resolutionMs: ResolutionMs = 60_000): SeriesRecorder {
    const opened: OpenSeries = { key, resolutionMs, periods: new Map() };
    return {
      record: (value) => {
        const nowMs = this.#options.clock.epochMs();
        const startMs = nowMs - (nowMs % resolutionMs);
        const values = opened.periods.get(startMs) ?? new Map<number, number>();
        opened.periods.set(startMs, values);
        this.#series.add(opened);
        const count = values.get(value) ?? 0;
        values.set(value, count + 1);
        if (count === 0 && (this.#valueCount += 1) >= valuesMax) this.#close();
      },
    };
  }

  /** Reports the last samples. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#report();
  }

  /** Makes a batch of the samples that are not in one. */
  #close(): void {
    if (this.#series.size === 0) return;
    const series = [...this.#series].map(({ key, resolutionMs, periods }): ReportedSeries => {
      const samples = [...periods].map(([startMs, values]) => ({ startMs, values: [...values] }));
      periods.clear();
      return { key, resolutionMs, samples };
    });
    this.#series.clear();
    this.#valueCount = 0;
    this.#batches.push({ gateway: this.#gateway, number: (this.#number += 1), series });
    if (this.#batches.length <= batchesMax) return;
    this.#batches.shift();
    this.#options.logger.warning("metrics of a minute or less are dropped: the leader does not accept them");
  }

  /** Sends batches in order, until one fails. */
  async #report(): Promise<void> {
    this.#close();
    for (let [batch] = this.#batches; batch !== undefined; [batch] = this.#batches) {
      if (!(await this.#send(batch))) return;
      if (this.#batches[0] === batch) this.#batches.shift();
    }
  }

  /** Resolves with whether the leader has acknowledged the batch. */
  async #send(batch: MetricBatch): Promise<boolean> {
    const { leader, keys, region, clock, logger } = this.#options;
    if (leader.url === null) return false;
    const url = new URL(metricBatchPath, leader.url);
    const body = JSON.stringify(batch);
    const [key] = keys.all;
    const request = { method: "POST", url, body, region, service: "sagemaker", timeMs: clock.epochMs() } as const;
    try {
      const headers = key === undefined ? {} : signRequestHeaders(request, key);
      const response = await fetch(url, { method: "POST", body, headers, signal: AbortSignal.timeout(sendMsMax) });
      const text = await response.text();
      if (response.status === 200) return true;
      logger.warning("the leader has not accepted metrics", { status: response.status, error: text.slice(0, 200) });
    } catch {
      // There is no leader now. The batch is sent again.
    }
    return false;
  }
}
