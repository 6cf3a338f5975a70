/**
 * Tests for state machines that record their transitions as documents. After a crash at any write of any transition,
 * the next run must reach the expected end, without lost acknowledged work and without leftovers.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { DocumentMemory } from "../memory-documents.ts";
import { cloneDocumentMemory, RememberedMemory } from "./remembered-memory.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

/** One path through a state machine. */
export interface RecordedTransition<World, Found> {
  readonly what: string;
  /** Creates the initial state, without crashes. */
  readonly given?: (fixture: World) => Promise<unknown>;
  /** Requests the transition. Resolves when it is acknowledged. */
  readonly request: (fixture: World) => Promise<unknown>;
  /** Other results that are allowed if the crash happens before the acknowledgement; none by default. */
  readonly orElse?: readonly Found[];
  readonly end: Found;
  /** Minimum number of writes of the transition. With fewer, the test would not cover any crash. */
  readonly writesMin: number;
}

export interface RecordedMachine<World extends AsyncDisposable, ExternalState, Found, Step extends string> {
  readonly name: string;
  /** The platform crashes after each write of these kinds of documents; null: after every write. */
  readonly kinds: readonly string[] | null;
  /** Opens a platform with the given documents. `outside` is null for the first run. */
  readonly open: (memory: DocumentMemory, outside: ExternalState | null) => Promise<World>;
  /**
   * Returns the state outside the documents that a crash at this moment leaves: files, external processes, the time.
   */
  readonly outside: (fixture: World) => ExternalState;
  /** Reports changes outside the documents. The platform crashes after each of them, too. */
  readonly watch?: (fixture: World, changed: () => void) => Disposable;
  /** Resolves when no transition is in progress. */
  readonly settled: (fixture: World) => Promise<unknown>;
  /**
   * Returns the observed state: states, running instances, documents, files. It is polled until it equals the expected
   * state.
   */
  readonly found: (fixture: World, memory: DocumentMemory) => Promise<Found>;
  /** Names of the rows that test each transition of the machine. */
  readonly steps: Readonly<Record<Step, readonly string[]>>;
  readonly rows: readonly RecordedTransition<World, Found>[];
  /** Number of crashes that are tested concurrently; 1 by default. */
  readonly atOnce?: number;
}

export function recordedTransitionsContract<World extends AsyncDisposable, ExternalState, Found, Step extends string>(
  machine: RecordedMachine<World, ExternalState, Found, Step>,
): void {
  test(`${machine.name}: each transition has a row in the table of kills`, () => {
    const rows = new Set(machine.rows.map(({ what }) => what));
    for (const [step, names] of Object.entries<readonly string[]>(machine.steps)) {
      assert.ok(names.length > 0, step);
      for (const name of names) assert.ok(rows.delete(name) || isNamedTwice(machine, name), `${step}: ${name}`);
    }
    assert.deepEqual([...rows], [], "rows of no transition");
  });
  for (const row of machine.rows) {
    test(`${machine.name}: ${row.what}; killed after any of its writes, the platform reaches the right state`, async () => {
      const { snapshots, acknowledgedCount } = await firstRun(machine, row);
      assert.ok(snapshots.length >= row.writesMin, `${snapshots.length} writes`);
      const pending = [...snapshots.entries()];
      const one = async () => {
        for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
          const [index, snapshot] = next;
          const isAcknowledged = index + 1 >= acknowledgedCount;
          await nextRun(machine, row, {
            ...snapshot,
            isAcknowledged,
            what: `write ${index + 1} of ${snapshots.length}`,
          });
        }
      };
      await Promise.all(Array.from({ length: machine.atOnce ?? 1 }, one));
    });
  }
}

interface Snapshot<ExternalState> {
  readonly memory: DocumentMemory;
  readonly outside: ExternalState;
}

async function firstRun<World extends AsyncDisposable, ExternalState, Found, Step extends string>(
  machine: RecordedMachine<World, ExternalState, Found, Step>,
  row: RecordedTransition<World, Found>,
): Promise<{ readonly snapshots: readonly Snapshot<ExternalState>[]; readonly acknowledgedCount: number }> {
  const snapshots: Snapshot<ExternalState>[] = [];
  let first: World | null = null;
  const keep = (memory: DocumentMemory) => {
    if (first !== null) snapshots.push({ memory, outside: machine.outside(first) });
  };
  const memory = new RememberedMemory(machine.kinds, keep);
  await using fixture = await machine.open(memory, null);
  first = fixture;
  using _watching = machine.watch?.(fixture, () => keep(cloneDocumentMemory(memory)));
  await row.given?.(fixture);
  await machine.settled(fixture);
  snapshots.length = 0;
  await row.request(fixture);
  const acknowledgedCount = snapshots.length;
  await machine.settled(fixture);
  await waitForState(machine, { world: fixture, memory }, { may: [row.end], when: "without a crash" });
  return { snapshots: [...snapshots], acknowledgedCount };
}

async function nextRun<World extends AsyncDisposable, ExternalState, Found, Step extends string>(
  machine: RecordedMachine<World, ExternalState, Found, Step>,
  row: RecordedTransition<World, Found>,
  snapshot: Snapshot<ExternalState> & { readonly isAcknowledged: boolean; readonly what: string },
): Promise<void> {
  const memory = cloneDocumentMemory(snapshot.memory);
  await using fixture = await machine.open(memory, snapshot.outside);
  await machine.settled(fixture);
  const may = snapshot.isAcknowledged ? [row.end] : [row.end, ...(row.orElse ?? [])];
  await waitForState(machine, { world: fixture, memory }, { may, when: `after ${snapshot.what}` });
}

async function waitForState<World extends AsyncDisposable, ExternalState, Found, Step extends string>(
  machine: RecordedMachine<World, ExternalState, Found, Step>,
  { world, memory }: { readonly world: World; readonly memory: DocumentMemory },
  { may, when }: { readonly may: readonly Found[]; readonly when: string },
): Promise<void> {
  for (const untilMs = performance.now() + testTimeoutMs; ;) {
    const found = await machine.found(world, memory);
    if (may.some((each) => isDeepStrictEqual(each, found))) return;
    if (performance.now() > untilMs) {
      assert.fail(`${when}: found ${JSON.stringify(found)}, which may be ${JSON.stringify(may)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function isNamedTwice<World extends AsyncDisposable, ExternalState, Found, Step extends string>(
  { steps, rows }: RecordedMachine<World, ExternalState, Found, Step>,
  name: string,
): boolean {
  const names = Object.values<readonly string[]>(steps).flat();
  return rows.some(({ what }) => what === name) && names.filter((each) => each === name).length > 1;
}
