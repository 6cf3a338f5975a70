import { InferenceError, type Clock } from "@galatea/base";
import type { CallingExecution, RequestCaller } from "../inference/index.ts";

/** A call from one model to another that has not completed. */
export interface NestedCall {
  readonly caller: RequestCaller;
  /** Identity of the loaded model that is called; compared with the `owner` of executions. */
  readonly target: object;
  readonly targetName: string;
  /** Number of the called model's instances that can execute without starting their worker; dormant instances are not counted. */
  readonly instanceCount: number;
  /** True if the call is known to wait for an instance in the called model's queue. */
  readonly isQueued: boolean;
  /** True if the called model is decoupled: it may send responses after its instance has begun another execution. */
  readonly isStreamed: boolean;
}

/**
 * Returns the calls that are in a deadlock; an empty list if every call can proceed. A call is deadlocked if executions that make
 * deadlocked calls occupy all instances that could run it, or if one of those executions runs it. An execution is deadlocked if all of its
 * calls are.
 */
export function findDeadlock<Call extends NestedCall>(calls: readonly Call[]): readonly Call[] {
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
 * Returns whether the call depends on one of the `stuck` executions of the called model: one of them executes the call, or they occupy all
 * instances. In the second case the call waits until one of them ends, even if a worker has received it in advance.
 */
function waitsFor(
  { caller, instanceCount, isQueued, isStreamed }: NestedCall,
  stuck: readonly CallingExecution[],
): boolean {
  if (stuck.some(({ callers }) => callers.has(caller))) return true;
  return stuck.length >= instanceCount && (isQueued || !isStreamed);
}

/** Interval between two searches for deadlocks. A deadlock fails a call when two consecutive searches find it. */
const searchIntervalMs = 500;

interface OpenCall extends NestedCall {
  readonly controller: AbortController;
}

/**
 * Tracks all current calls between models and resolves deadlocks. In Triton, calls that wait for each other wait for ever. Here the
 * youngest call of a deadlock fails after two consecutive searches have found the deadlock. One search is not enough, because a model may
 * still respond without waiting for its own calls.
 */
export class CallGraph {
  readonly #clock: Clock;
  readonly #calls = new Set<OpenCall>();
  #seen: ReadonlySet<OpenCall> = new Set();
  #isSearchScheduled = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Tracks a call until the result is disposed. `signal` aborts, with an error, if the call must fail to resolve a deadlock. */
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
    if (!this.#isSearchScheduled) this.#scheduleCheck();
    return {
      signal: controller.signal,
      [Symbol.dispose]: () => {
        this.#calls.delete(open);
      },
    };
  }

  #scheduleCheck(): void {
    this.#isSearchScheduled = true;
    this.#clock.timer(searchIntervalMs, () => this.#look());
  }

  #look(): void {
    this.#isSearchScheduled = this.#calls.size > 0;
    if (this.#isSearchScheduled) this.#scheduleCheck();
    const knot = findDeadlock([...this.#calls]);
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
