/** One call that a model makes to another model. All requests that result from the call share this object. */
export interface RequestCaller {
  readonly execution: CallingExecution;
}

/**
 * An execution that calls other models while it runs. Created at its first call and shared by all its calls. The deadlock search compares
 * `owner`s.
 */
export interface CallingExecution {
  /** Identity of the model version that executes. */
  readonly owner: object;
  readonly modelName: string;
  /** Depth of nested calls: 1 for a model that a client calls. */
  readonly depth: number;
  /** The latest queue deadline of the execution's requests, in nanoseconds of the monotonic clock; Infinity for none. */
  readonly deadlineNs: number;
  /** The largest `executionMsMax` of the execution's requests; null when one of them has none. */
  readonly executionMsMax: number | null;
  /** The calls by other models that this execution serves. */
  readonly callers: ReadonlySet<RequestCaller>;
  /** False if the execution's instance is already free for another execution. */
  readonly holdsInstance: boolean;
}
