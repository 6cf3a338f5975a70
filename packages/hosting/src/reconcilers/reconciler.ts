import { patientWrite, type Clock, type Logger, type PatientWriteOptions, type TaskGroup } from "@galatea/base";
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
  transition(event: Event): Promise<Value>;
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
export interface Reconciled<Value extends ReconciledRecord, Event> extends AsyncDisposable {
  /** As log lines name one of them, such as `an endpoint`. */
  readonly what: string;
  readonly records: RecordKind<Value>;
  /** Work in the background; ends when this is disposed. */
  readonly tasks: TaskGroup;
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
}

export interface ReconcilerOptions {
  readonly store: Pick<HostingStore, "write" | "attempt" | "kinds">;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Signals {
  readonly signal: AbortSignal;
  readonly closing: AbortSignal;
}

interface Versioned<Value> {
  readonly value: Value;
  readonly version: number;
}

/**
 * Makes what runs follow what is recorded. For each record one action after the other runs, as the record's state says, until the state has
 * none. A transition is written over the record that its action was given; where that is another by now the action is given up, and the next
 * one begins from the record as it is. So whatever a caller has recorded meanwhile (a deletion, another update) goes first.
 */
export class Reconciler<Value extends ReconciledRecord, Event> implements AsyncDisposable {
  readonly #kind: Reconciled<Value, Event>;
  readonly #options: ReconcilerOptions;
  readonly #leases = new Leases();

  constructor(kind: Reconciled<Value, Event>, options: ReconcilerOptions) {
    this.#kind = kind;
    this.#options = options;
  }

  /** Goes on with a record of a previous run of the platform. */
  resume(record: Value): void {
    const key = nameKey(record.name);
    this.#kind.added?.(record);
    this.#work(key, async (signals) => {
      try {
        await this.#kind.resume?.(record);
      } catch (error) {
        const { name } = record;
        return this.#options.logger.error(`${this.#kind.what} cannot be resumed`, { name, error: String(error) });
      }
      if (this.#actionOf(record) !== null) await this.#reconcile(key, signals);
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
      await this.#put(key, found, next);
      return next;
    });
    if (moved !== null) this.#changed(key);
    return moved;
  }

  /** Whatever runs stops; records stay. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kind[Symbol.asyncDispose]();
  }

  #changed(key: string): void {
    this.#work(key, (signals) => this.#reconcile(key, signals));
  }

  #work(key: string, work: (signals: Signals) => Promise<void>): void {
    this.#kind.tasks.run((closing) =>
      this.#leases.hold(key, (superseded) => work({ signal: AbortSignal.any([closing, superseded]), closing })),
    );
  }

  /** Never rejects. */
  async #reconcile(key: string, signals: Signals): Promise<void> {
    const step = () => this.#step(key, signals);
    try {
      while (!signals.signal.aborted && (await patientWrite(step, this.#patience(key, "disk faults", signals.signal))));
    } catch (error) {
      if (signals.signal.aborted) return;
      this.#options.logger.error(`${this.#kind.what} is not reconciled`, { name: key, error: String(error) });
    }
  }

  /** Whether another one may follow. */
  async #step(key: string, { signal, closing }: Signals): Promise<boolean> {
    const found = await this.#kind.records.find(key);
    if (found.at !== "found") return false;
    const action = this.#actionOf(found.value);
    if (action === null) return false;
    const refused = new AbortController();
    const either = AbortSignal.any([signal, refused.signal]);
    let now: Versioned<Value> = found;
    const written = async <Written>(write: Promise<Written>): Promise<Written> => {
      try {
        return await write;
      } catch (error) {
        if (error instanceof DocumentConflict) refused.abort(error);
        throw error;
      }
    };
    const put = async (moved: Value, recorded?: (moved: Value) => void) => {
      now = { value: moved, version: await written(this.#put(key, now, moved, recorded)) };
      return moved;
    };
    const transition = (event: Event) => put(this.#moved(now.value, event));
    try {
      const outcome = await action({ key, record: found.value, signal: either, closing, transition });
      if (outcome === null) return now !== found;
      const patience = this.#patience(key, "every error", either);
      if (outcome.do === "forget") {
        await patientWrite(() => written(this.#forget(key, now)), patience);
        return false;
      }
      const moved = this.#moved(now.value, outcome.event);
      await patientWrite(() => put(moved, outcome.recorded), patience);
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

  #put(
    key: string,
    { value, version }: Versioned<Value>,
    moved: Value,
    recorded?: (moved: Value) => void,
  ): Promise<number> {
    const consequences = this.#kind.consequences?.(value, moved);
    return this.#options.store.write([this.#kind.records.put(key, moved, version)], {
      ...consequences,
      recorded() {
        consequences?.recorded?.();
        recorded?.(moved);
      },
    });
  }

  #forget(key: string, { value, version }: Versioned<Value>): Promise<number> {
    const { store } = this.#options;
    const changes = [this.#kind.records.delete(key, version), store.kinds.tags.delete(value.arn, "any")];
    return store.write(changes, this.#kind.consequences?.(value, null));
  }

  #patience(name: string, outlasts: PatientWriteOptions["outlasts"], signal: AbortSignal): PatientWriteOptions {
    const { clock, logger } = this.#options;
    return { clock, logger, what: `a transition of ${this.#kind.what}`, name, outlasts, signal };
  }
}
