import type { InferenceError } from "@galatea/base";
import type { NamespaceMetrics } from "../backends/index.ts";
import type { RequestRecord } from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import type { BlockSource } from "../tensor/index.ts";
import type { ModelStatistics } from "./engine.ts";
import { failureLabel, type FailureReason, type RequestObserver } from "./request-observer.ts";
import { VersionStatistics } from "./statistics.ts";

/** The metrics of one model version: created with value 0 when the version loads, removed by `close`. */
export interface VersionMetrics {
  succeeded(record: RequestRecord, durationNs: number): void;
  failed(reason: FailureReason, record: RequestRecord): void;
  close(): void;
}

/** Creates the engine's metrics; the `serve` command implements it with the metrics registry. */
export interface EngineMetrics {
  open(labels: {
    readonly model: string;
    readonly version: string;
    readonly namespace: string;
    readonly tags: ReadonlyMap<string, string>;
    readonly loadSeconds: number;
    readonly pendingCount: () => number;
  }): VersionMetrics;
  /**
   * Creates the custom metrics of a namespace's models, whose values are in the arena. The caller disposes them after the namespace's last
   * model.
   */
  ofModels(namespace: string, arena: BlockSource): NamespaceMetrics & Disposable;
}

interface Open {
  /** Returns the number of pending requests in the current scheduler of the version. */
  pendingCount: () => number;
  readonly statistics: VersionStatistics;
  metrics: VersionMetrics;
}

/** A version that is being put into service. */
export interface OpenedVersion {
  readonly namespace: string;
  readonly config: ModelConfig;
  readonly version: number;
  readonly loadNs: number;
  readonly pendingCount: () => number;
}

const noMetrics: VersionMetrics = { succeeded() {}, failed() {}, close() {} };

/** Statistics and metrics of all model versions. A reload of a version continues its counts. */
export class VersionObservers {
  readonly #metrics: EngineMetrics;
  readonly #open = new Map<string, Open>();

  constructor(metrics: EngineMetrics) {
    this.#metrics = metrics;
  }

  open(opened: OpenedVersion): RequestObserver {
    const { namespace, config, version } = opened;
    const key = keyOf(namespace, config.name, version);
    let row = this.#open.get(key);
    if (row === undefined) {
      const created: Open = {
        pendingCount: opened.pendingCount,
        statistics: new VersionStatistics(),
        metrics: noMetrics,
      };
      created.metrics = this.#metrics.open({
        model: config.name,
        version: String(version),
        namespace,
        tags: config.metricTags,
        loadSeconds: opened.loadNs / 1e9,
        pendingCount: () => created.pendingCount(),
      });
      row = created;
      this.#open.set(key, row);
    }
    row.pendingCount = opened.pendingCount;
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
      metrics.failed(failureLabel(record, error), record);
    },
  };
}

function keyOf(namespace: string, name: string, version: number): string {
  return `${namespace}\n${name}\n${version}`;
}
