import type { CallingExecution, InferenceRequest, RequestCaller } from "../../inference/index.ts";

/** An execution that calls other models. When all of its requests are cancelled, its calls are aborted. */
export class PythonCallingExecution implements CallingExecution {
  readonly owner: object;
  readonly modelName: string;
  readonly depth: number;
  readonly deadlineNs: number;
  readonly executionMsMax: number | null;
  readonly callers: ReadonlySet<RequestCaller>;
  holdsInstance = true;
  readonly #requests: ReadonlySet<InferenceRequest>;
  readonly #cancelled = new Set<InferenceRequest>();
  readonly #calls = new Set<AbortController>();

  constructor(owner: object, modelName: string, batch: readonly InferenceRequest[]) {
    this.owner = owner;
    this.modelName = modelName;
    this.depth = 1 + Math.max(0, ...batch.map(({ caller }) => caller?.execution.depth ?? 0));
    this.deadlineNs = Math.max(...batch.map(({ deadlineNs }) => deadlineNs));
    this.executionMsMax = executionLimitMs(batch);
    this.callers = new Set(batch.flatMap(({ caller }) => (caller === null ? [] : [caller])));
    this.#requests = new Set(batch);
    for (const request of batch) if (request.signal?.aborted) this.cancelRequest(request);
  }

  /** Marks a request as cancelled if it belongs to this execution. */
  cancelRequest(request: InferenceRequest): void {
    if (!this.#requests.has(request)) return;
    this.#cancelled.add(request);
    if (this.#isCancelled) for (const call of this.#calls) call.abort();
  }

  get #isCancelled(): boolean {
    return this.#cancelled.size === this.#requests.size;
  }

  /** True while the execution waits for a call to another model. */
  get isCalling(): boolean {
    return this.#calls.size > 0;
  }

  /** Aborts the call when the execution is cancelled, until `leave` is called. */
  join(call: AbortController): void {
    this.#calls.add(call);
    if (this.#isCancelled) call.abort();
  }

  leave(call: AbortController): void {
    this.#calls.delete(call);
  }
}

/** Returns the execution limit of a batch in milliseconds: the largest limit of its requests; null when one of them has none. */
export function executionLimitMs(batch: readonly InferenceRequest[]): number | null {
  let limitMs = 0;
  for (const { executionMsMax } of batch) {
    if (executionMsMax === null) return null;
    limitMs = Math.max(limitMs, executionMsMax);
  }
  return limitMs;
}
