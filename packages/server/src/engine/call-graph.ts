import { InferenceError, type Clock } from "@galatea/base";
import type { CallingExecution, RequestCaller } from "../inference/index.ts";

/** A call between models that has not been answered. */
export interface NestedCall {
  readonly caller: RequestCaller;
  /** What was loaded of the model that is called; compared with the `owner` of executions. */
  readonly target: object;
  readonly targetName: string;
  /** Those that execute, or are about to: dormant ones are not among them. */
  readonly instanceCount: number;
  /** Whether it waits for an instance, as far as its model's scheduler knows. */
  readonly isQueued: boolean;
  /** Its answers come one by one, perhaps when its model executes something else already. */
  readonly isStreamed: boolean;
}

/**
 * Calls that can only be answered when another of them has been. Each waits for an instance while executions with such calls hold all that
 * it could have, or is executed by one of those; an execution is one of them when all of its calls are. Empty where every call may go on.
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
 * Whether the call waits for one of `stuck`, which are executions of the model that it calls: one of them executes it, or they hold all
 * instances. Then it is in nobody's hands, and waits behind them even where it was handed to a worker ahead of its time.
 */
function waitsFor(
  { caller, instanceCount, isQueued, isStreamed }: NestedCall,
  stuck: readonly CallingExecution[],
): boolean {
  if (stuck.some(({ answers }) => answers.has(caller))) return true;
  return stuck.length >= instanceCount && (isQueued || !isStreamed);
}

/** How often is looked for knots, and so for how long one has lasted when it is seen a second time. */
const lookMs = 500;

interface OpenCall extends NestedCall {
  readonly controller: AbortController;
}

/**
 * All calls between models now. Triton waits for ever where they wait for each other; here the youngest call of such a knot fails, once the
 * knot was seen twice: a model may answer without waiting for what it has called.
 */
export class CallGraph {
  readonly #clock: Clock;
  readonly #calls = new Set<OpenCall>();
  #seen: ReadonlySet<OpenCall> = new Set();
  /** Whether it looks again after a while. */
  #isLooking = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Until it is disposed of. The signal aborts with the error that the call then fails with. */
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
    `model '${caller.execution.modelName}' waits for '${targetName}', all of whose instances wait for answers that come after this one: ` +
      "models that call each other in a circle need more instances than the circle has turns",
  );
}
