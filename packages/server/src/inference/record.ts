/**
 * The times of one request. Each step writes its own; they are read once, where the request ends (statistics, metrics, trace and log come
 * from this record alone). Nanoseconds of the engine's monotonic clock; 0 = not reached.
 */
export interface RequestRecord {
  receivedNs: number;
  queuedNs: number;
  /** Time at which the request left the queue: its batch was handed to an instance. */
  startedNs: number;
  /** Durations of the batch's three phases, as the backend measured them; sums over the steps for an ensemble. */
  computeInputNs: number;
  computeInferNs: number;
  computeOutputNs: number;
  /** Elements on the batch axis of this request; 1 for models that do not batch. */
  batchSize: number;
  /** Size of the whole batch that this request was executed in, and whether this request counts the execution. */
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
