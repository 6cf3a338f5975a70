import type { InferenceError } from "../base/index.ts";
import type { RequestRecord } from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import type { ModelStatistics } from "./engine.ts";
import { failureReason, type FailureReason, type RequestObserver } from "./request-observer.ts";
import { VersionStatistics } from "./statistics.ts";

/** The metric rows of one model version; made at 0 when it loads, removed by `close`. */
export interface VersionMetrics {
  succeeded(record: RequestRecord, durationNs: number): void;
  failed(reason: FailureReason): void;
  close(): void;
}

/** Where rows come from; tied to the instruments in `app/`. */
export interface EngineMetrics {
  open(labels: {
    readonly model: string;
    readonly version: string;
    readonly namespace: string;
    readonly tags: ReadonlyMap<string, string>;
    readonly loadSeconds: number;
  }): VersionMetrics;
}

interface Open {
  readonly statistics: VersionStatistics;
  readonly metrics: VersionMetrics;
}

/** Statistics and metrics by model version. A reload of the same version goes on counting. */
export class VersionObservers {
  readonly #metrics: EngineMetrics;
  readonly #open = new Map<string, Open>();

  constructor(metrics: EngineMetrics) {
    this.#metrics = metrics;
  }

  open(namespace: string, config: ModelConfig, version: number, loadNs: number): RequestObserver {
    const key = keyOf(namespace, config.name, version);
    let row = this.#open.get(key);
    if (row === undefined) {
      const metrics = this.#metrics.open({
        model: config.name,
        version: String(version),
        namespace,
        tags: config.metricTags,
        loadSeconds: loadNs / 1e9,
      });
      row = { statistics: new VersionStatistics(), metrics };
      this.#open.set(key, row);
    }
    return observer(row);
  }

  close(namespace: string, name: string, version: number): void {
    const key = keyOf(namespace, name, version);
    this.#open.get(key)?.metrics.close();
    this.#open.delete(key);
  }

  statistics(namespace: string, name: string, version: number): ModelStatistics {
    const row = this.#open.get(keyOf(namespace, name, version));
    return (row?.statistics ?? new VersionStatistics()).snapshot(name, String(version));
  }
}

function observer({ statistics, metrics }: Open): RequestObserver {
  return {
    succeeded(record: RequestRecord, endNs: number, epochMs: number) {
      statistics.succeeded(record, endNs, epochMs);
      metrics.succeeded(record, endNs - record.receivedNs);
    },
    failed(record: RequestRecord, endNs: number, error: InferenceError) {
      statistics.failed(record, endNs);
      metrics.failed(failureReason(record, error));
    },
  };
}

function keyOf(namespace: string, name: string, version: number): string {
  return `${namespace}\n${name}\n${version}`;
}
