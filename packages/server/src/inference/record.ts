/**
 * The times of one request, in nanoseconds of the engine's monotonic clock; 0 = not reached. Each step of the request writes its own times.
 * They are read once, when the request ends: statistics, metrics, traces and logs are derived from this record alone.
 */
export interface RequestRecord {
  receivedNs: number;
  queuedNs: number;
  /** Time at which the request left the queue: its batch was handed to an instance. */
  startedNs: number;
  /** Durations of the three phases of the batch, as measured by the backend; for an ensemble, sums over its steps. */
  computeInputNs: number;
  computeInferNs: number;
  computeOutputNs: number;
  /** Size of this request on the batch axis; 1 for models that do not batch. */
  batchSize: number;
  /**
   * Size of the whole batch that this request was executed in, and whether this request counts the execution (the first request of a batch
   * does).
   */
  executedBatchSize: number;
  countsExecution: boolean;
}

export function newRecord(receivedNs: number, batchSize = 1): RequestRecord {
  return {
    receivedNs,
    queuedNs: 0,
    startedNs: 0,
    computeInputNs: 0,
    computeInferNs: 0,
    computeOutputNs: 0,
    batchSize,
    executedBatchSize: 0,
    countsExecution: false,
  };
}
