/** Who asks for a request that a model makes: one object for each call, kept by all requests that come of it. */
export interface RequestCaller {
  readonly execution: CallingExecution;
}

/**
 * An execution that calls other models while it runs: made when it makes its first call, kept by the requests that it makes.
 * Whoever looks for calls that wait for each other compares `owner`s.
 */
export interface CallingExecution {
  /** The loaded model version that executes, as the one who loaded it knows it. */
  readonly owner: object;
  readonly modelName: string;
  /** How many calls lie above this one: 1 for a model that a client asked. */
  readonly depth: number;
  /** When the last of its requests gives up waiting in queues; Infinity for never. */
  readonly deadlineNs: number;
  /** The longest `executionMsMax` of its requests; null where one of them has none. */
  readonly executionMsMax: number | null;
  /** The calls of other models that it executes. */
  readonly answers: ReadonlySet<RequestCaller>;
  /** False when its model can execute something else already. */
  readonly holdsInstance: boolean;
}
