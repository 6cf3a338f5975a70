import type { RequestRecord } from "../inference/index.ts";
import type { DurationStatistics, ModelStatistics } from "./engine.ts";

interface Duration {
  count: number;
  ns: number;
}

interface BatchRow {
  readonly computeInput: Duration;
  readonly computeInfer: Duration;
  readonly computeOutput: Duration;
}

/** The totals of one model version for /v2/models/stats. Updated once for each request, from its record. */
export class VersionStatistics {
  #lastInferenceMs = 0;
  #inferenceCount = 0;
  #executionCount = 0;
  readonly #success: Duration = { count: 0, ns: 0 };
  readonly #fail: Duration = { count: 0, ns: 0 };
  readonly #queue: Duration = { count: 0, ns: 0 };
  readonly #computeInput: Duration = { count: 0, ns: 0 };
  readonly #computeInfer: Duration = { count: 0, ns: 0 };
  readonly #computeOutput: Duration = { count: 0, ns: 0 };
  readonly #batches = new Map<number, BatchRow>();

  succeeded(record: RequestRecord, endNs: number, epochMs: number): void {
    this.#lastInferenceMs = epochMs;
    this.#inferenceCount += record.batchSize;
    add(this.#success, endNs - record.receivedNs);
    add(this.#queue, record.startedNs - record.queuedNs);
    add(this.#computeInput, record.computeInputNs);
    add(this.#computeInfer, record.computeInferNs);
    add(this.#computeOutput, record.computeOutputNs);
    if (record.countsExecution) this.#executed(record);
  }

  failed(record: RequestRecord, endNs: number): void {
    add(this.#fail, endNs - record.receivedNs);
    if (record.countsExecution) this.#executed(record);
  }

  #executed(record: RequestRecord): void {
    this.#executionCount++;
    let row = this.#batches.get(record.executedBatchSize);
    if (row === undefined) {
      row = {
        computeInput: { count: 0, ns: 0 },
        computeInfer: { count: 0, ns: 0 },
        computeOutput: { count: 0, ns: 0 },
      };
      this.#batches.set(record.executedBatchSize, row);
    }
    add(row.computeInput, record.computeInputNs);
    add(row.computeInfer, record.computeInferNs);
    add(row.computeOutput, record.computeOutputNs);
  }

  snapshot(name: string, version: string): ModelStatistics {
    return {
      name,
      version,
      lastInferenceMs: this.#lastInferenceMs,
      inferenceCount: this.#inferenceCount,
      executionCount: this.#executionCount,
      success: copy(this.#success),
      fail: copy(this.#fail),
      queue: copy(this.#queue),
      computeInput: copy(this.#computeInput),
      computeInfer: copy(this.#computeInfer),
      computeOutput: copy(this.#computeOutput),
      batches: [...this.#batches]
        .sort(([a], [b]) => a - b)
        .map(([batchSize, row]) => ({
          batchSize,
          computeInput: copy(row.computeInput),
          computeInfer: copy(row.computeInfer),
          computeOutput: copy(row.computeOutput),
        })),
    };
  }
}

function add(duration: Duration, ns: number): void {
  duration.count++;
  if (ns > 0) duration.ns += ns;
}

function copy(duration: Duration): DurationStatistics {
  return { count: duration.count, ns: Math.round(duration.ns) };
}
