import { patientWrite, TaskGroup, type Clock, type Logger, type PatientWriteOptions } from "@galatea/base";
import { nameKey } from "../definitions/index.ts";
import { DocumentConflict } from "../records/index.ts";
import type { HostingStore, RecordKind, WriteConsequences } from "../store/index.ts";
import { Leases } from "./leases.ts";

/** What every record has that is reconciled. */
export interface ReconciledRecord {
  readonly name: string;
  readonly arn: string;
  readonly modifiedMs: number;
  readonly state: { readonly at: string };
}

/** A record in one of the states. */
export type InState<Value extends ReconciledRecord, At extends Value["state"]["at"]> = Value & {
  readonly state: Extract<Value["state"], { readonly at: At }>;
};

/** One action on a record: from the reading of the record to the transition that the action comes to. */
export interface RecordStep<Value extends ReconciledRecord, Event, Found extends Value = Value> {
  readonly key: string;
  /** As it was read. */
  readonly record: Found;
  /** Aborts when another writer has changed the record, or the platform ends. */
  readonly signal: AbortSignal;
  /** Aborts when the platform ends: for work that goes on when the record changes. */
  readonly closing: AbortSignal;
  /**
   * Records a transition in the middle of the action: once, without a retry. Rejects with the signal's reason where another writer has changed
   * the record.
   */
  readonly transition: (event: Event) => Promise<Value>;
  /** Runs work that the next step does not wait for. */
  readonly background: (work: (closing: AbortSignal) => Promise<void>) => void;
}

/** What an action comes to; null where it has nothing more to record. */
export type StepOutcome<Value, Event> =
  /** `recorded` is called when the transition is recorded, before anybody is notified of it. */
  | { readonly do: "transition"; readonly event: Event; readonly recorded?: (moved: Value) => void }
  /** The record is deleted. */
  | { readonly do: "forget" }
  | null;

type Action<Value extends ReconciledRecord, Event, Found extends Value = Value> = (
  step: RecordStep<Value, Event, Found>,
) => Promise<StepOutcome<Value, Event>>;

/** One kind of records: its transitions, the action of each state, and what runs for it. */
export interface ReconciledKind<Value extends ReconciledRecord, Event> {
  /** As log lines name one of them, such as `an endpoint`. */
  readonly what: string;
  readonly records: RecordKind<Value>;
  /** Pure. Throws where the state does not know the event: a bug of the caller. */
  readonly transition: (record: Value, event: Event) => Value;
  /** Null for a state that stays until a caller changes it. An action may begin again from its start: after a kill, and after a disk fault. */
  readonly actions: { readonly [At in Value["state"]["at"]]: Action<Value, Event, InState<Value, At>> | null };
  /** Called with each record that is resumed or created, before anything is done for it. */
  readonly added?: (record: Value) => void;
  /** Starts again what ran for a record when the platform ended. */
  readonly resume?: (record: Value) => Promise<void>;
  /** `after`: null where the record is deleted. */
  readonly consequences?: (before: Value, after: Value | null) => WriteConsequences;
  /** For the platform's end: what runs for the records stops. */
  readonly leave?: () => Promise<void>;
}

export interface ReconcilerOptions {
  readonly store: Pick<HostingStore, "write" | "attempt" | "kinds">;
  readonly clock: Clock;
  readonly logger: Logger;
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
 * Makes what runs follow what is recorded. For each record one action after the other runs, as the record's state says, until the state has
 * none. A transition is written over the record that its action was given; where that is another by now the action is given up, and the next
 * one begins from the record as it is. So whatever a caller has recorded meanwhile (a deletion, another update) goes first.
 */
export class Reconciler<Value extends ReconciledRecord, Event> implements AsyncDisposable {
  readonly #kind: ReconciledKind<Value, Event>;
  readonly #options: ReconcilerOptions;
  readonly #leases = new Leases();
  readonly #tasks: TaskGroup;

  constructor(kind: ReconciledKind<Value, Event>, options: ReconcilerOptions) {
    this.#kind = kind;
    this.#options = options;
    this.#tasks = new TaskGroup((error) => {
      options.logger.error(`background work of ${kind.what} failed`, { error: String(error) });
    });
  }

  /** Goes on with a record of a previous run of the platform. */
  resume(record: Value): void {
    const key = nameKey(record.name);
    this.#kind.added?.(record);
    this.#work(key, async (signal) => {
      await this.#kind.resume?.(record);
      if (this.#actionOf(record) !== null) await this.#reconcile(key, signal);
    });
  }

  /** Begins with a record that was created. */
  begin(record: Value): void {
    this.#kind.added?.(record);
    this.#changed(nameKey(record.name));
  }

  /**
   * Records a transition that a caller decides on for the record as it is, and goes on from there: the action that is under way is given up.
   * Null where the record is gone, or `decide` finds no transition to make.
   */
  async transition(key: string, decide: (record: Value) => Event | null): Promise<Value | null> {
    const moved = await this.#options.store.attempt(async () => {
      const found = await this.#kind.records.find(key);
      if (found.at !== "found") return null;
      const event = decide(found.value);
      if (event === null) return null;
      const next = this.#moved(found.value, event);
      await this.#write(key, found, { value: next });
      return next;
    });
    if (moved !== null) this.#changed(key);
    return moved;
  }

  /** Whatever runs stops; records stay. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#kind.leave?.();
  }

  #changed(key: string): void {
    this.#work(key, (signal) => this.#reconcile(key, signal));
  }

  /** Alone, as soon as what is done for the record now has ended. */
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
    while (!signal.aborted && (await patientWrite(step, this.#patience(key, "disk faults", signal))));
  }

  /** Whether another one may follow. */
  async #step(key: string, signal: AbortSignal): Promise<boolean> {
    const found = await this.#kind.records.find(key);
    if (found.at !== "found") return false;
    const action = this.#actionOf(found.value);
    if (action === null) return false;
    const refused = new AbortController();
    const either = AbortSignal.any([signal, refused.signal]);
    let now: Versioned<Value> = found;
    const write = async (after: Written<Value> | null) => {
      try {
        const version = await this.#write(key, now, after);
        if (after !== null) now = { value: after.value, version };
      } catch (error) {
        if (error instanceof DocumentConflict) refused.abort(error);
        throw error;
      }
    };
    const transition = async (event: Event) => {
      await write({ value: this.#moved(now.value, event) });
      return now.value;
    };
    const background = (work: (closing: AbortSignal) => Promise<void>) => this.#tasks.run(work);
    const closing = this.#tasks.signal;
    try {
      const outcome = await action({ key, record: found.value, signal: either, closing, transition, background });
      if (outcome === null) return now !== found;
      const after =
        outcome.do === "forget" ? null : { value: this.#moved(now.value, outcome.event), recorded: outcome.recorded };
      await patientWrite(() => write(after), this.#patience(key, "every error", either));
      return true;
    } catch (error) {
      if (refused.signal.aborted) return true;
      throw error;
    }
  }

  #actionOf({ state }: Value): Action<Value, Event> | null {
    const at: Value["state"]["at"] = state.at;
    // The action of a state is given records in that state alone.
    return this.#kind.actions[at] as Action<Value, Event> | null;
  }

  #moved(value: Value, event: Event): Value {
    return { ...this.#kind.transition(value, event), modifiedMs: this.#options.clock.epochMs() };
  }

  /** `after`: null where the record is deleted. */
  #write(key: string, { value, version }: Versioned<Value>, after: Written<Value> | null): Promise<number> {
    const { store } = this.#options;
    const { records } = this.#kind;
    const consequences = this.#kind.consequences?.(value, after?.value ?? null);
    const changes =
      after === null
        ? [records.delete(key, version), store.kinds.tags.delete(value.arn, "any")]
        : [records.put(key, after.value, version)];
    const recorded = () => {
      consequences?.recorded?.();
      after?.recorded?.(after.value);
    };
    return store.write(changes, { ...consequences, recorded });
  }

  #patience(name: string, outlasts: PatientWriteOptions["outlasts"], signal: AbortSignal): PatientWriteOptions {
    const { clock, logger } = this.#options;
    return { clock, logger, what: `a transition of ${this.#kind.what}`, name, outlasts, signal };
  }
}
