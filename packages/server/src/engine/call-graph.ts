import { InferenceError, type Clock } from "@galatea/base";
import type { CallingExecution, RequestCaller } from "../inference/index.ts";

/** A call between models without a response yet. */
export interface NestedCall {
  readonly caller: RequestCaller;
  /** Identity of the loaded model that is called; compared with the `owner` of executions. */
  readonly target: object;
  readonly targetName: string;
  /** Number of instances that execute or are about to; dormant ones are not counted. */
  readonly instanceCount: number;
  /** True if the call waits for an instance, as far as the model's scheduler knows. */
  readonly isQueued: boolean;
  /** True if the responses come one by one, possibly after the model has begun another execution. */
  readonly isStreamed: boolean;
}

/**
 * Returns the calls that are in a deadlock: each waits for an instance while executions with such calls occupy all instances that it
 * could use, or one of those executes it. An execution is in the deadlock when all of its calls are. Empty when every call can proceed.
 */
export function knotOf<Call extends NestedCall>(calls: readonly Call[]): readonly Call[] {
  const stuck = new Map<CallingExecution, readonly Call[]>();
  for (const [execution, own] of Map.groupBy(calls, ({ caller }) => caller.execution))
    if (execution.holdsInstance) stuck.set(execution, own);
  for (;;) {
    const byOwner = Map.groupBy(stuck.keys(), ({ owner }) => owner);
    const free = [...stuck].filter(([, own]) => !own.every((call) => waitsFor(call, byOwner.get(call.target) ?? [])));
    if (free.length === 0) return calls.filter(({ caller }) => stuck.has(caller.execution));
    for (const [execution] of free) stuck.delete(execution);
  }
}

/**
 * Returns whether the call waits for one of `stuck`, which are executions of the called model: one of them executes it, or they occupy
 * all instances. In the second case the call waits behind them, even if it was handed to a worker ahead of time.
 */
function waitsFor(
  { caller, instanceCount, isQueued, isStreamed }: NestedCall,
  stuck: readonly CallingExecution[],
): boolean {
  if (stuck.some(({ answers }) => answers.has(caller))) return true;
  return stuck.length >= instanceCount && (isQueued || !isStreamed);
}

/** Interval between two searches for deadlocks; a deadlock that is seen twice has lasted that long. */
const lookMs = 500;

interface OpenCall extends NestedCall {
  readonly controller: AbortController;
}

/**
 * All current calls between models. Triton waits for ever when calls wait for each other. Here the youngest call of a deadlock fails
 * after the deadlock was seen twice: a model may respond without waiting for its own calls.
 */
export class CallGraph {
  readonly #clock: Clock;
  readonly #calls = new Set<OpenCall>();
  #seen: ReadonlySet<OpenCall> = new Set();
  /** True if another search is scheduled. */
  #isLooking = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Adds a call until the result is disposed. The signal aborts with the error with which the call then fails. */
  begin(call: NestedCall): Disposable & { readonly signal: AbortSignal } {
    const controller = new AbortController();
    const open: OpenCall = {
      caller: call.caller,
      target: call.target,
      targetName: call.targetName,
      isStreamed: call.isStreamed,
      get instanceCount() {
        return call.instanceCount;
      },
      get isQueued() {
        return call.isQueued;
      },
      controller,
    };
    this.#calls.add(open);
    if (!this.#isLooking) this.#lookLater();
    return {
      signal: controller.signal,
      [Symbol.dispose]: () => {
        this.#calls.delete(open);
      },
    };
  }

  #lookLater(): void {
    this.#isLooking = true;
    this.#clock.timer(lookMs, () => this.#look());
  }

  #look(): void {
    this.#isLooking = this.#calls.size > 0;
    if (this.#isLooking) this.#lookLater();
    const knot = knotOf([...this.#calls]);
    const lasting = knot.filter((call) => this.#seen.has(call));
    const youngest =
      lasting.length === knot.length ? (knot.findLast(({ isQueued }) => isQueued) ?? knot.at(-1)) : undefined;
    this.#seen = new Set(knot);
    youngest?.controller.abort(waitForEachOther(youngest));
  }
}

function waitForEachOther({ caller, targetName }: NestedCall): InferenceError {
  return new InferenceError(
    "UNAVAILABLE",
    `model '${caller.execution.modelName}' waits for '${targetName}', whose instances all wait for responses that depend on this one: ` +
      "models that call each other in a circle need more instances than the circle has models",
  );
}
