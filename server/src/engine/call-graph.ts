import { InferenceError, type Clock } from "../base/index.ts";
import type { CallingExecution } from "../inference/index.ts";

/** A call between models that has not been answered. */
export interface NestedCall {
  readonly caller: CallingExecution;
  /** What was loaded of the model that is called; compared with the `owner` of executions. */
  readonly target: object;
  readonly targetName: string;
  readonly instanceCount: number;
  /** Whether it waits for an instance. */
  readonly isQueued: boolean;
}

/**
 * Calls that can only be answered when another of them has been: each waits for an instance, and all instances that it could have are
 * held by executions whose calls, all of them, wait in the same way. Empty where every call may still go on.
 */
export function knotOf<Call extends NestedCall>(calls: readonly Call[]): readonly Call[] {
  const byCaller = Map.groupBy(calls, ({ caller }) => caller);
  const stuck = new Map<CallingExecution, Call[]>();
  for (const [caller, own] of byCaller)
    if (caller.holdsInstance && own.every(({ isQueued }) => isQueued)) stuck.set(caller, own);
  for (;;) {
    const held = new Map<object, number>();
    for (const { owner } of stuck.keys()) held.set(owner, (held.get(owner) ?? 0) + 1);
    const free = [...stuck].filter(([, own]) =>
      own.some(({ target, instanceCount }) => (held.get(target) ?? 0) < instanceCount),
    );
    if (free.length === 0) return [...stuck.values()].flat();
    for (const [caller] of free) stuck.delete(caller);
  }
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
      instanceCount: call.instanceCount,
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
    const youngest = lasting.length === knot.length ? knot.at(-1) : undefined;
    this.#seen = new Set(knot);
    youngest?.controller.abort(waitForEachOther(youngest));
  }
}

function waitForEachOther({ caller, targetName }: NestedCall): InferenceError {
  return new InferenceError(
    "UNAVAILABLE",
    `model '${caller.modelName}' waits for '${targetName}', all of whose instances wait for answers that come after this one: ` +
      "models that call each other in a circle need more instances than the circle has turns",
  );
}
