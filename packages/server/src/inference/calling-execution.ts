/** The origin of a request that a model sends: one object for each call, shared by all requests that result from it. */
export interface RequestCaller {
  readonly execution: CallingExecution;
}

/**
 * An execution that calls other models while it runs. Created at its first call, and shared by the requests that it sends. The search for
 * deadlocks compares `owner`s.
 */
export interface CallingExecution {
  /** Identity of the model version that executes. */
  readonly owner: object;
  readonly modelName: string;
  /** Depth of the call: 1 for a model that a client calls. */
  readonly depth: number;
  /** The latest deadline of its requests for waiting in queues; Infinity for none. */
  readonly deadlineNs: number;
  /** The longest `executionMsMax` of its requests; null when one of them has none. */
  readonly executionMsMax: number | null;
  /** The calls of other models that it executes. */
  readonly answers: ReadonlySet<RequestCaller>;
  /** False when its instance is already free for another execution. */
  readonly holdsInstance: boolean;
}
