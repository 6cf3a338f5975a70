import { retryWrite, TaskGroup, type Clock, type Logger, type RetryWriteOptions } from "@galatea/base";
import { nameKey } from "../definitions/index.ts";
import { DocumentConflict } from "../records/index.ts";
import type { HostingStore, RecordKind, WriteEffects } from "../store/index.ts";
import { Leases } from "./leases.ts";
import type { StateLog } from "./state-log.ts";

/** The fields that all reconciled records have. */
export interface ReconciledRecord {
  readonly name: string;
  readonly arn: string;
  readonly modifiedMs: number;
  /** `reason`: failure reason of the record. `lastFailure`: failure reason of the last update. */
  readonly state: { readonly at: string; readonly reason?: string; readonly lastFailure?: string | null };
}

/** A record whose state is known to be one of `At`. */
export type RecordInState<Value extends ReconciledRecord, At extends Value["state"]["at"]> = Value & {
  readonly state: Extract<Value["state"], { readonly at: At }>;
};

/** The arguments of an action on a record. */
export interface ActionContext<Value extends ReconciledRecord, Event, Found extends Value = Value> {
  readonly key: string;
  /** The record as it was read before the action. */
  readonly record: Found;
  /** Aborts when another writer has changed the record, or when the platform shuts down. */
  readonly signal: AbortSignal;
  /** Aborts only when the platform shuts down. Used by work that must continue when the record changes. */
  readonly closing: AbortSignal;
  /**
   * Records a transition before the action ends, without a retry. If another writer has changed the record, rejects with DocumentConflict and aborts
   * `signal`.
   */
  readonly transition: (event: Event) => Promise<Value>;
  /** Runs work in the background: the next action does not wait for it. */
  readonly background: (work: (closing: AbortSignal) => Promise<void>) => void;
}

/** The outcome of an action; null if there is nothing more to record. */
export type ActionOutcome<Value, Event> =
  /** Record a transition. `recorded` is called after the write, before observers are notified. */
  | { readonly do: "transition"; readonly event: Event; readonly recorded?: (moved: Value) => void }
  /** Delete the record. */
  | { readonly do: "forget" }
  | null;

type Action<Value extends ReconciledRecord, Event, Found extends Value = Value> = (
  step: ActionContext<Value, Event, Found>,
) => Promise<ActionOutcome<Value, Event>>;

/** A kind of reconciled record: its state machine, and the action to run in each state. */
export interface ReconciledKind<Value extends ReconciledRecord, Event> {
  /** Name of the record kind in log lines, such as `endpoint`. */
  readonly what: string;
  readonly records: RecordKind<Value>;
  /** Returns the record after an event, without side effects. Throws if the event is not allowed in the state, which is a bug of the caller. */
  readonly transition: (record: Value, event: Event) => Value;
  /** Returns true if the reconciler will change a record in this state to another state. */
  readonly isTransient: (state: Value["state"]) => boolean;
  /** The action of each state; null for states that only an event of a caller can change. Actions must be idempotent: they run again after a crash or a disk fault. */
  readonly actions: { readonly [At in Value["state"]["at"]]: Action<Value, Event, RecordInState<Value, At>> | null };
  /** Called with each resumed or created record, before its first action. */
  readonly added?: (record: Value) => void;
  /** Starts the instances of a record again after a restart of the platform. */
  readonly resume?: (record: Value) => Promise<void>;
  /** Returns the effects of a successful write; `after` is null for a deletion. */
  readonly consequences?: (before: Value, after: Value | null) => WriteEffects;
  /** Stops all instances of the records when the platform shuts down. */
  readonly shutDown?: () => Promise<void>;
}

export interface ReconcilerOptions {
  readonly store: Pick<HostingStore, "write" | "attempt" | "kinds">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly stateLog: Pick<StateLog, "entered">;
}

interface Versioned<Value> {
  readonly value: Value;
  readonly version: number;
}

interface Written<Value> {
  readonly value: Value;
  readonly recorded?: ((moved: Value) => void) | undefined;
}

/**
 * Reconciles the records of one kind with the running instances. For each record, it runs the action of the current state, records the
 * transition that the action returns, and continues until a state has no action. A transition is written only if the record still has the
 * version that the action has read. If a caller has changed the record (a deletion, another update), the action is cancelled and the action of
 * the new state starts.
 */
export class Reconciler<Value extends ReconciledRecord, Event> implements AsyncDisposable {
  readonly #kind: ReconciledKind<Value, Event>;
  readonly #options: ReconcilerOptions;
  readonly #leases = new Leases();
  /** Monotonic time at which each record entered its transient state. */
  readonly #enteredNs = new Map<string, number>();
  readonly #tasks: TaskGroup;

  constructor(kind: ReconciledKind<Value, Event>, options: ReconcilerOptions) {
    this.#kind = kind;
    this.#options = options;
    this.#tasks = new TaskGroup((error) => {
      options.logger.error(`reconciler of ${kind.what}: a background task failed with an unexpected error`, {
        error: String(error),
      });
    });
  }

  /** Resumes a record after a restart of the platform. */
  resume(record: Value): void {
    const key = nameKey(record.name);
    this.#kind.added?.(record);
    this.#timeTransient(key, record);
    this.#work(key, async (signal) => {
      await this.#kind.resume?.(record);
      if (this.#actionOf(record) !== null) await this.#reconcile(key, signal);
    });
  }

  /** Starts to reconcile a record that was just created. */
  begin(record: Value): void {
    this.#kind.added?.(record);
    this.#logState(nameKey(record.name), null, record);
    this.#changed(nameKey(record.name));
  }

  /**
   * Records the event that `decide` returns for the current record, cancels the action in progress, and continues from the new state.
   * Resolves with null when the record does not exist or `decide` returns null.
   */
  async transition(key: string, decide: (record: Value) => Event | null): Promise<Value | null> {
    const moved = await this.#options.store.attempt(async () => {
      const found = await this.#kind.records.find(key);
      if (found.at !== "found") return null;
      const event = decide(found.value);
      if (event === null) return null;
      const next = this.#afterEvent(found.value, event);
      await this.#write(key, found, { value: next });
      return next;
    });
    if (moved !== null) this.#changed(key);
    return moved;
  }

  /** Cancels actions and stops instances. The records are kept. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#kind.shutDown?.();
  }

  #changed(key: string): void {
    this.#work(key, (signal) => this.#reconcile(key, signal));
  }

  /** Cancels the current work for a record, and runs new work when it has ended. */
  #work(key: string, work: (signal: AbortSignal) => Promise<void>): void {
    const { what } = this.#kind;
    this.#tasks.run((closing) =>
      this.#leases.hold(key, async (superseded) => {
        const signal = AbortSignal.any([closing, superseded]);
        await work(signal).catch((error: unknown) => {
          if (signal.aborted) return;
          this.#options.logger.error(`${what} is not reconciled`, { name: key, error: String(error) });
        });
      }),
    );
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<void> {
    const step = () => this.#step(key, signal);
    while (!signal.aborted && (await retryWrite(step, this.#backoff(key, "disk faults", signal))));
  }

  /** Runs the action of a record's state. Resolves with true if another action may follow. */
  async #step(key: string, signal: AbortSignal): Promise<boolean> {
    const found = await this.#kind.records.find(key);
    if (found.at !== "found") return false;
    const action = this.#actionOf(found.value);
    if (action === null) return false;
    const conflict = new AbortController();
    const either = AbortSignal.any([signal, conflict.signal]);
    let now: Versioned<Value> = found;
    const write = async (after: Written<Value> | null) => {
      try {
        const version = await this.#write(key, now, after);
        if (after !== null) now = { value: after.value, version };
      } catch (error) {
        if (error instanceof DocumentConflict) conflict.abort(error);
        throw error;
      }
    };
    const transition = async (event: Event) => {
      await write({ value: this.#afterEvent(now.value, event) });
      return now.value;
    };
    const background = (work: (closing: AbortSignal) => Promise<void>) => this.#tasks.run(work);
    const closing = this.#tasks.signal;
    try {
      const outcome = await action({ key, record: found.value, signal: either, closing, transition, background });
      if (outcome === null) return now !== found;
      const after =
        outcome.do === "forget"
          ? null
          : { value: this.#afterEvent(now.value, outcome.event), recorded: outcome.recorded };
      await retryWrite(() => write(after), this.#backoff(key, "every error", either));
      return true;
    } catch (error) {
      if (conflict.signal.aborted) return true;
      throw error;
    }
  }

  #actionOf({ state }: Value): Action<Value, Event> | null {
    const at: Value["state"]["at"] = state.at;
    // The cast is safe: the action of a state gets only records in that state.
    return this.#kind.actions[at] as Action<Value, Event> | null;
  }

  #afterEvent(value: Value, event: Event): Value {
    return { ...this.#kind.transition(value, event), modifiedMs: this.#options.clock.epochMs() };
  }

  /** Writes a record, or deletes it if `after` is null. Resolves with the new version. */
  #write(key: string, { value, version }: Versioned<Value>, after: Written<Value> | null): Promise<number> {
    const { store } = this.#options;
    const { records } = this.#kind;
    const consequences = this.#kind.consequences?.(value, after?.value ?? null);
    const changes =
      after === null
        ? [records.deleteChange(key, version), store.kinds.tags.deleteChange(value.arn, "any")]
        : [records.putChange(key, after.value, version)];
    const recorded = () => {
      this.#logState(key, value, after?.value ?? null);
      consequences?.recorded?.();
      after?.recorded?.(after.value);
    };
    return store.write(changes, { ...consequences, recorded });
  }

  /** Logs the new state of a record if a write has changed the state. `after` is null for a deletion. */
  #logState(key: string, before: Value | null, after: Value | null): void {
    const record = after ?? before;
    if (record === null || before?.state.at === after?.state.at) return;
    const sinceNs = this.#enteredNs.get(key);
    const tookMs = sinceNs === undefined ? null : (this.#options.clock.monotonicNs() - sinceNs) / 1e6;
    const { at, reason = null, lastFailure = null } = after?.state ?? { at: "deleted" };
    this.#options.stateLog.entered({
      what: this.#kind.what,
      name: record.name,
      at,
      tookMs,
      reason: reason ?? lastFailure,
    });
    this.#timeTransient(key, after);
  }

  #timeTransient(key: string, record: Value | null): void {
    if (record !== null && this.#kind.isTransient(record.state))
      this.#enteredNs.set(key, this.#options.clock.monotonicNs());
    else this.#enteredNs.delete(key);
  }

  #backoff(name: string, retries: RetryWriteOptions["retries"], signal: AbortSignal): RetryWriteOptions {
    const { clock, logger } = this.#options;
    return {
      clock,
      logger,
      recordDescription: `a transition of the ${this.#kind.what}`,
      ownerName: name,
      retries,
      signal,
    };
  }
}
