/**
 * Tests of the reconciler with records of a test kind: concurrent writers, disk errors, superseded actions, and kills
 * between any two steps.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { silentLogger, systemClock, unreachable, type Clock } from "@galatea/base";
import type { Document, DocumentChange } from "../records/index.ts";
import { DocumentMemory, MemoryDocuments } from "../records/memory-documents.ts";
import { HostingStore } from "../store/index.ts";
import { RecordKind } from "../store/record-kind.ts";
import {
  Reconciler,
  type ReconciledKind,
  type ReconciledRecord,
  type ActionContext,
  type ActionOutcome,
} from "./reconciler.ts";

interface ToyRecord extends ReconciledRecord {
  readonly desiredCount: number;
  readonly state:
    | { readonly at: "Creating" }
    | { readonly at: "Updating"; readonly isStarted: boolean }
    | { readonly at: "Serving"; readonly observedCount: number }
    | { readonly at: "Stopped" }
    | { readonly at: "Failed" }
    | { readonly at: "Deleting" };
}

type ToyEvent =
  | { readonly kind: "begun" | "reached" | "failed" | "stop" | "delete" }
  | { readonly kind: "update"; readonly desiredCount: number };

const toyKind = "toy";

function toyTransition(record: ToyRecord, event: ToyEvent): ToyRecord {
  const { at } = record.state;
  switch (event.kind) {
    case "update":
      return { ...record, desiredCount: event.desiredCount, state: { at: "Updating", isStarted: false } };
    case "begun":
      assert.equal(at, "Updating");
      return { ...record, state: { at: "Updating", isStarted: true } };
    case "reached":
      assert.ok(at === "Creating" || at === "Updating", at);
      return { ...record, state: { at: "Serving", observedCount: record.desiredCount } };
    case "failed":
      return { ...record, state: { at: "Failed" } };
    case "stop":
      return { ...record, state: { at: "Stopped" } };
    case "delete":
      return { ...record, state: { at: "Deleting" } };
    default:
      return unreachable(event);
  }
}

/** The random numbers of one run. The sequence starts again at its end. */
class Dice {
  readonly #numbers: readonly number[];
  #thrown = 0;

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers;
  }

  next(sides: number): number {
    return (this.#numbers[this.#thrown++ % this.#numbers.length] ?? 0) % sides;
  }
}

const diskFull = () => Object.assign(new Error("no space left"), { code: "ENOSPC", syscall: "write" });
const isTerminal = (change: DocumentChange) =>
  change.do === "delete" || (change.do === "put" && /"at":"(Serving|Failed)"/.test(change.body));

/** Documents whose reads and writes are asynchronous, sometimes fail, and always fail after the platform was killed. */
class FaultyDocuments extends MemoryDocuments {
  readonly #memory: DocumentMemory;
  readonly #dice: Dice;
  isDead = false;

  constructor(memory: DocumentMemory, dice: Dice) {
    super(memory);
    this.#memory = memory;
    this.#dice = dice;
  }

  override async get(kind: string, key: string): Promise<Document | null> {
    if (kind === toyKind) await this.pause();
    return await super.get(kind, key);
  }

  override async write(changes: readonly DocumentChange[]): Promise<number> {
    await this.pause();
    const [first] = changes;
    if (first?.kind === toyKind && this.#dice.next(8) === 0) this.#writeByAnother(first.key);
    const version = await super.write(changes);
    // The write succeeded although the caller gets an error. The reconciler must detect this.
    if (changes.some(isTerminal) && this.#dice.next(6) === 0) throw new Error("lost");
    return version;
  }

  /** Waits for some event loop ticks, and may fail. */
  async pause(): Promise<void> {
    for (let left = this.#dice.next(4); left > 0; left--) await new Promise((resolve) => setImmediate(resolve));
    if (this.isDead) throw new Error("killed");
    if (this.#dice.next(9) === 0) throw diskFull();
  }

  /** Changes a record without a notification, so that the next writer gets a conflict. */
  #writeByAnother(key: string): void {
    const found = this.#memory.find(toyKind, key);
    if (found !== null) this.#memory.write([{ do: "put", kind: toyKind, key, body: found.body, expects: "any" }]);
  }
}

/** A clock whose timers fire immediately, so that retries are not delayed. */
const hastyClock: Clock = {
  ...systemClock,
  timer(_delayMs, fire) {
    const handle = setImmediate(fire);
    return { [Symbol.dispose]: () => clearImmediate(handle) };
  },
};

/** A platform from its start to its kill. */
class ToyPlatform implements ReconciledKind<ToyRecord, ToyEvent> {
  readonly what = "toy";
  readonly isTransient = ({ at }: ToyRecord["state"]) => at !== "Serving" && at !== "Failed";
  readonly records: RecordKind<ToyRecord>;
  readonly failures: string[] = [];
  readonly transition = toyTransition;
  readonly actions: ReconciledKind<ToyRecord, ToyEvent>["actions"] = {
    Creating: (step) => this.#alone(step, () => this.#reach(step)),
    Updating: (step) => this.#alone(step, () => this.#reach(step)),
    Serving: null,
    Stopped: (step) => this.#alone(step, () => this.#halt()),
    Failed: null,
    Deleting: (step) => this.#alone(step, () => this.#tearDown()),
  };
  readonly reconciler: Reconciler<ToyRecord, ToyEvent>;
  readonly documents: FaultyDocuments;
  readonly #dice: Dice;
  readonly #store: HostingStore;
  readonly #busy = new Set<string>();

  private constructor(documents: FaultyDocuments, store: HostingStore, dice: Dice) {
    this.documents = documents;
    this.#store = store;
    this.#dice = dice;
    this.records = new RecordKind(toyKind, { documents, orders: () => ({}), logger: silentLogger });
    const logger = { ...silentLogger, error: (text: string, fields?: object) => this.#heard(text, fields) };
    this.reconciler = new Reconciler(this, {
      store,
      clock: hastyClock,
      logger,
      stateLog: { entered: () => {} },
    });
  }

  static async open(memory: DocumentMemory, dice: Dice): Promise<ToyPlatform> {
    const documents = new FaultyDocuments(memory, dice);
    const store = await HostingStore.open(documents, { clock: systemClock, logger: silentLogger });
    const platform = new ToyPlatform(documents, store, dice);
    for (const { kind, body } of memory.held.values()) {
      if (kind === toyKind) platform.reconciler.resume(JSON.parse(body) as ToyRecord);
    }
    return platform;
  }

  async resume(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
  }

  async create(record: ToyRecord): Promise<void> {
    await this.documents.write([this.records.putChange(record.name, record, "absent")]);
    this.reconciler.begin(record);
  }

  /** Stops all reads and writes, and cancels the running transitions. */
  async kill(): Promise<void> {
    this.documents.isDead = true;
    await this.reconciler[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.reconciler[Symbol.asyncDispose]();
    await this.#store[Symbol.asyncDispose]();
  }

  async #alone(step: ActionContext<ToyRecord, ToyEvent>, act: () => Promise<ActionOutcome<ToyRecord, ToyEvent>>) {
    if (this.#busy.has(step.key)) this.failures.push(`two actions at once on ${step.key}`);
    this.#busy.add(step.key);
    try {
      return await act();
    } finally {
      this.#busy.delete(step.key);
    }
  }

  async #reach(step: ActionContext<ToyRecord, ToyEvent>): Promise<ActionOutcome<ToyRecord, ToyEvent>> {
    await this.documents.pause();
    if (this.#dice.next(2) === 0) step.signal.throwIfAborted();
    const { state } = step.record;
    if (state.at === "Updating" && !state.isStarted) {
      await step.transition({ kind: "begun" });
      if (this.#dice.next(2) === 0) return null;
    }
    await this.documents.pause();
    return { do: "transition", event: { kind: this.#dice.next(10) === 0 ? "failed" : "reached" } };
  }

  async #halt(): Promise<null> {
    await this.documents.pause();
    return null;
  }

  async #tearDown(): Promise<ActionOutcome<ToyRecord, ToyEvent>> {
    await this.documents.pause();
    return { do: "forget" };
  }

  #heard(text: string, fields?: object): void {
    if (!/(it is tried again|retrying)$/.test(text)) this.failures.push(`${text} ${JSON.stringify(fields)}`);
  }
}

type Ask =
  | { readonly do: "create" }
  | { readonly do: "kill" }
  | { readonly do: "update"; readonly desiredCount: number; readonly of: number }
  | { readonly do: "stop" | "delete"; readonly of: number };

const ofMax = 3;
const asks: fc.Arbitrary<Ask> = fc.oneof(
  fc.constant({ do: "create" } as const),
  fc.constant({ do: "kill" } as const),
  fc.record({ do: fc.constant("update" as const), desiredCount: fc.nat(9), of: fc.nat(ofMax) }),
  fc.record({ do: fc.constant("stop" as const), of: fc.nat(ofMax) }),
  fc.record({ do: fc.constant("delete" as const), of: fc.nat(ofMax) }),
);

const isDeleting = ({ state }: ToyRecord) => state.at === "Deleting";
const stays = ({ state: { at } }: ToyRecord) => at === "Serving" || at === "Stopped" || at === "Failed";

/** Waits for a condition by event loop ticks, because no timers are used in these tests. */
async function turnsUntil(isSo: () => boolean): Promise<void> {
  for (let count = 0; !isSo(); count++) {
    assert.ok(count < 5000, "the records come to no end");
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Simulated callers, with the results of their calls. */
class Callers {
  readonly deleted = new Set<string>();
  readonly #dice: Dice;
  #createdCount = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  async request(platform: ToyPlatform, requested: Exclude<Ask, { readonly do: "kill" }>): Promise<void> {
    if (requested.do === "create") {
      const name = `toy-${this.#createdCount++}`;
      return await platform.create({ name, arn: name, modifiedMs: 0, desiredCount: 1, state: { at: "Creating" } });
    }
    const name = `toy-${requested.of}`;
    const event: ToyEvent =
      requested.do === "update" ? { kind: "update", desiredCount: requested.desiredCount } : { kind: requested.do };
    const moved = await platform.reconciler.transition(name, (now) => (isDeleting(now) ? null : event));
    if (requested.do === "delete" && moved !== null) this.deleted.add(name);
  }

  async pause(): Promise<void> {
    for (let left = this.#dice.next(9); left > 0; left--) await new Promise((resolve) => setImmediate(resolve));
  }
}

const recordsIn = ({ held }: DocumentMemory) =>
  [...held.values()].filter(({ kind }) => kind === toyKind).map(({ body }) => JSON.parse(body) as ToyRecord);

test("property: after any events, failed writes and kills every record reaches a stable state, with one action at a time per record", async () => {
  const numbers = fc.array(fc.nat(2 ** 16), { minLength: 50, maxLength: 400 });
  await fc.assert(
    fc.asyncProperty(fc.array(asks, { minLength: 2, maxLength: 25 }), numbers, async (all, thrown) => {
      const memory = new DocumentMemory();
      const dice = new Dice([1, ...thrown]);
      const callers = new Callers(dice);
      await using platforms = new AsyncDisposableStack();
      let platform = platforms.use(await ToyPlatform.open(memory, dice));
      const failures: string[] = [];
      const calls: Promise<void>[] = [];
      for (const requested of all) {
        await callers.pause();
        if (requested.do === "kill") {
          await platform.kill();
          failures.push(...platform.failures);
          platform = platforms.use(await ToyPlatform.open(memory, dice));
        } else calls.push(callers.request(platform, requested).catch(() => {}));
      }
      await Promise.all(calls);
      await turnsUntil(() => recordsIn(memory).every(stays));
      for (const { name, desiredCount, state } of recordsIn(memory)) {
        assert.ok(!callers.deleted.has(name), `${name} was deleted`);
        if (state.at === "Serving") assert.equal(state.observedCount, desiredCount, name);
      }
      // A lease that was not released would block the next action of its record.
      for (const { name } of recordsIn(memory)) {
        while (recordsIn(memory).some((each) => each.name === name && stays(each))) {
          await callers.request(platform, { do: "delete", of: Number(name.slice(4)) }).catch(() => {});
        }
      }
      await turnsUntil(() => recordsIn(memory).length === 0);
      assert.deepEqual([...failures, ...platform.failures], []);
    }),
    { numRuns: 300 },
  );
});
