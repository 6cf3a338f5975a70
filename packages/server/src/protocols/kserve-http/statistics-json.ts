import type { DurationStatistics, ModelStatistics } from "../../engine/index.ts";

interface DurationJson {
  readonly count: number;
  readonly ns: number;
}

function duration(statistics: DurationStatistics): DurationJson {
  return { count: statistics.count, ns: Math.round(statistics.ns) };
}

/** There is no response cache. Its two keys are present because perf_analyzer reads every key unconditionally. */
const never: DurationJson = { count: 0, ns: 0 };

/** Returns the body of /v2/models/stats: every key of the protocol, including those that are always empty. */
export function statisticsJson(rows: readonly ModelStatistics[]): unknown {
  return {
    model_stats: rows.map((row) => ({
      name: row.name,
      version: row.version,
      last_inference: Math.round(row.lastInferenceMs),
      inference_count: row.inferenceCount,
      execution_count: row.executionCount,
      inference_stats: {
        success: duration(row.success),
        fail: duration(row.fail),
        queue: duration(row.queue),
        compute_input: duration(row.computeInput),
        compute_infer: duration(row.computeInfer),
        compute_output: duration(row.computeOutput),
        cache_hit: never,
        cache_miss: never,
      },
      response_stats: {},
      batch_stats: row.batches.map((batch) => ({
        batch_size: batch.batchSize,
        compute_input: duration(batch.computeInput),
        compute_infer: duration(batch.computeInfer),
        compute_output: duration(batch.computeOutput),
      })),
      memory_usage: [],
    })),
  };
}
