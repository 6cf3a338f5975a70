import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { ModelCopy } from "../instance-agent/index.ts";
import {
  copiesMax,
  firstInRank,
  placeModel,
  placementLimits,
  queueBound,
  type PlacementCandidate,
} from "./model-placement.ts";
import { placementKeyOf } from "./model-rank.ts";

const key = placementKeyOf("an endpoint");

interface Seat extends PlacementCandidate {
  inFlightCount: number;
  readonly copy: ModelCopy;
  readonly isBusyWith: boolean;
  readonly hasRoom: boolean;
}

type Seats = [Seat, ...Seat[]];

const empty = (seat: number): Seat => ({ seat, inFlightCount: 0, copy: "absent", isBusyWith: true, hasRoom: true });
const seatsOf = (count: number) => Array.from({ length: count }, (_, seat) => empty(seat)) as Seats;
const place = (seats: readonly Seat[], target: string) =>
  placeModel(
    seats as Seats,
    {
      target,
      key,
      copyOn: ({ copy }) => copy,
      isBusyWith: ({ isBusyWith }) => isBusyWith,
      hasRoomOn: ({ hasRoom }) => hasRoom,
    },
    placementLimits,
  );
const targets = Array.from({ length: 4000 }, (_, index) => `tenants/${index}.tar.gz`);

const anySeats = fc.uniqueArray(fc.nat(100), { minLength: 1, maxLength: 12 }).chain((seats) =>
  fc.tuple(
    ...seats.map((seat) =>
      fc.record({
        seat: fc.constant(seat),
        inFlightCount: fc.nat(60),
        copy: fc.constantFrom<ModelCopy>("loaded", "coming", "absent"),
        isBusyWith: fc.boolean(),
        hasRoom: fc.boolean(),
      }),
    ),
  ),
) as unknown as fc.Arbitrary<Seats>;

test("an instance that comes or goes moves about its share of the models, and no other", () => {
  for (const count of [2, 3, 4, 9, 33]) {
    const seats = seatsOf(count);
    const moved = targets.filter((target) => {
      const before = place(seats.slice(0, -1), target).serve;
      const after = place(seats, target).serve;
      // What moves at all moves to the new one.
      if (before !== after) assert.equal(after, seats.at(-1));
      return before !== after;
    });
    const share = moved.length / targets.length;
    assert.ok(Math.abs(share - 1 / count) < 0.25 / count + 0.01, `${share} of the models moved to one of ${count}`);
  }
});

test("models are spread evenly, whatever they and the instances are called", () => {
  for (const names of [
    targets,
    targets.map((_, index) => String(index)),
    targets.map((_, index) => "m".repeat(index)),
  ]) {
    const held = new Map<number, number>();
    for (const target of names) {
      const { seat } = place(seatsOf(5), target).serve;
      held.set(seat, (held.get(seat) ?? 0) + 1);
    }
    for (const count of held.values()) assert.ok(count > 650 && count < 950, [...held.values()].join(" "));
  }
});

test("an instance is given more than its part only where no other one that has the model is free, and none may have it", () => {
  fc.assert(
    fc.property(anySeats, fc.string(), (seats, target) => {
      const { serve, bring } = place(seats, target);
      const bound = queueBound(
        seats.reduce((sum, { inFlightCount }) => sum + inFlightCount, 0),
        seats.length,
        placementLimits,
      );
      const having = seats.filter(({ copy }) => copy !== "absent");
      const loaded = seats.filter(({ copy }) => copy === "loaded");
      // Never to one without the model while another has it, so no request waits for a further copy.
      if (loaded.length > 0) assert.equal(serve.copy, "loaded");
      else if (having.length > 0) assert.equal(serve.copy, "coming");
      if (bring !== null) {
        assert.deepEqual([bring.copy, bring.hasRoom, bring.inFlightCount < bound], ["absent", true, true]);
        assert.ok(having.length < copiesMax(seats.length) && having.length === loaded.length && loaded.length > 0);
      }
      if (serve.inFlightCount < bound) return;
      assert.ok(having.length > 0);
      assert.ok(loaded.every(({ inFlightCount }) => inFlightCount >= serve.inFlightCount));
      const mayBring = having.length === loaded.length && having.length < copiesMax(seats.length) && loaded.length > 0;
      const free = seats.filter(({ copy, inFlightCount }) => copy === "absent" && inFlightCount < bound);
      if (!serve.isBusyWith) assert.equal(bring, null);
      else if (bring === null && mayBring && free.length > 0) {
        assert.equal(firstInRank(free as Seats, { key, target }).hasRoom, false);
      }
    }),
    { numRuns: 3000 },
  );
});

test("the same state has the same answer, in whatever order the instances are told", () => {
  fc.assert(
    fc.property(anySeats, fc.string(), fc.nat(100), (seats, target, turn) => {
      const from = turn % seats.length;
      const turned = [...seats.slice(from), ...seats.slice(0, from)];
      const { serve, bring } = place(seats, target);
      assert.deepEqual(place(seats, target), { serve, bring });
      assert.deepEqual(place(turned, target), { serve, bring });
      assert.deepEqual(place(turned.toReversed(), target), { serve, bring });
    }),
  );
});

/** Models of which each request is under way for a while, with loads that take no time. */
class Simulated {
  readonly #seats: readonly {
    readonly seat: number;
    inFlightCount: number;
    readonly models: Map<string, number>;
    readonly asked: string[];
  }[];
  readonly #underWay: (() => void)[] = [];
  loadCount = 0;
  #now = 0;

  constructor(count: number) {
    this.#seats = Array.from({ length: count }, (_, seat) => ({
      seat,
      inFlightCount: 0,
      models: new Map(),
      asked: [],
    }));
  }

  get inFlight(): readonly number[] {
    return this.#seats.map(({ inFlightCount }) => inFlightCount);
  }

  copies(target: string): number {
    return this.#seats.filter(({ models }) => models.has(target)).length;
  }

  /** What was in flight before it. */
  ask(target: string): {
    readonly before: { readonly all: readonly number[]; readonly chosen: number; readonly isBusyWith: boolean };
  } {
    this.#now += 1;
    const all = this.inFlight;
    const [first, ...more] = this.#seats;
    assert(first !== undefined);
    const isBusyWith = ({ asked }: typeof first) =>
      asked.filter((each) => each === target).length * new Set(asked).size >= asked.length;
    const { serve, bring } = placeModel(
      [first, ...more],
      {
        target,
        key,
        copyOn: ({ models }) => (models.has(target) ? "loaded" : "absent"),
        isBusyWith,
        hasRoomOn: () => true,
      },
      placementLimits,
    );
    for (const each of new Set([serve, bring])) {
      if (each === null) continue;
      if (!each.models.has(target)) this.loadCount += 1;
      if (each === serve || !each.models.has(target)) each.models.set(target, this.#now);
    }
    const before = { all, chosen: serve.inFlightCount, isBusyWith: isBusyWith(serve) };
    serve.inFlightCount += 1;
    serve.asked.push(target);
    this.#underWay.push(() => {
      serve.inFlightCount -= 1;
      serve.asked.splice(serve.asked.indexOf(target), 1);
    });
    return { before };
  }

  answer(keeping: number): void {
    while (this.#underWay.length > keeping) this.#underWay.shift()?.();
  }

  /** Copies beside the first that have not been used since. */
  dropCold(sinceTick: number, target: string): void {
    const having = this.#seats.filter(({ models }) => models.has(target));
    const [first, ...more] = having;
    if (first === undefined) return;
    const stays = firstInRank([first, ...more], { key, target });
    for (const each of having)
      if (each !== stays && (each.models.get(target) ?? 0) < sinceTick) each.models.delete(target);
  }
}

test("a model that is asked for alone stays on one instance; a hot one gets copies, no more than it may, and loses them when it is cold", () => {
  const simulated = new Simulated(6);
  for (let index = 0; index < 200; index += 1) {
    simulated.ask("hot");
    simulated.answer(placementLimits.queueMin - 1);
  }
  assert.deepEqual([simulated.copies("hot"), simulated.loadCount], [1, 1]);
  for (let index = 0; index < 400; index += 1) {
    simulated.ask("hot");
    simulated.answer(100);
  }
  assert.deepEqual([simulated.copies("hot"), simulated.loadCount], [3, 3]);
  // The instances that have it share what there is.
  const busy = simulated.inFlight.filter((count) => count > 0).toSorted((a, b) => a - b);
  assert.deepEqual(busy, [33, 33, 34]);
  simulated.answer(0);
  for (let index = 0; index < 100; index += 1) {
    simulated.ask("hot");
    simulated.answer(1);
  }
  simulated.dropCold(600, "hot");
  assert.deepEqual([simulated.copies("hot"), simulated.loadCount], [1, 3]);
});

test("of many models' requests only so many are given to an instance beyond its bound as there are copies made for it, while a model may have more", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 8 }),
      fc.array(fc.nat(40), { minLength: 300, maxLength: 300 }),
      (count, asked) => {
        const simulated = new Simulated(count);
        let beyondCount = 0;
        for (const model of asked) {
          const target = targets[model] ?? "";
          const mayHaveMore = simulated.copies(target) < copiesMax(count);
          const { before } = simulated.ask(target);
          const sum = before.all.reduce((all, each) => all + each, 0);
          if (mayHaveMore && before.isBusyWith && before.chosen >= queueBound(sum, count, placementLimits))
            beyondCount += 1;
          simulated.answer(10 * count);
        }
        assert.ok(beyondCount <= simulated.loadCount - new Set(asked).size);
        assert.ok(simulated.loadCount <= 41 * copiesMax(count));
      },
    ),
    { numRuns: 100 },
  );
});
