import type { DurationStatistics, ModelStatistics } from "../../engine/index.ts";

interface DurationJson {
  readonly count: number;
  readonly ns: number;
}

function duration(statistics: DurationStatistics): DurationJson {
  return { count: statistics.count, ns: Math.round(statistics.ns) };
}

/** The response cache's durations, which are always 0 because there is no cache. They are sent because perf_analyzer reads all keys. */
const never: DurationJson = { count: 0, ns: 0 };

/** Returns the body of /v2/models/stats. It has every key of the protocol, including those whose values are always empty. */
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
