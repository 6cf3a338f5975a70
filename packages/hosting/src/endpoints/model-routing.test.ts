import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { ModelCopyState } from "../instance-agent/index.ts";
import {
  modelCopiesMax,
  highestRanked,
  routeModelRequest,
  modelRoutingLimits,
  busyThreshold,
  copiesPerRequestMax,
  fullInstancesMax,
  type RoutingCandidate,
} from "./model-routing.ts";
import { ModelRank, derivePlacementKey } from "./model-rank.ts";
import { ModelRanks } from "./model-ranks.ts";

const key = derivePlacementKey("an endpoint");

interface Candidate extends RoutingCandidate {
  inFlightCount: number;
  readonly copy: ModelCopyState;
  readonly isBusyWith: boolean;
  readonly requestCount: number;
  readonly hasRoom: boolean;
}

type Candidates = [Candidate, ...Candidate[]];

const empty = (ordinal: number): Candidate => ({
  ordinal,
  inFlightCount: 0,
  copy: "absent",
  isBusyWith: true,
  requestCount: 0,
  hasRoom: true,
});
const candidatesOf = (count: number) => Array.from({ length: count }, (_, ordinal) => empty(ordinal)) as Candidates;
const place = (candidates: readonly Candidate[], target: string, ranks = new ModelRanks(key)) =>
  routeModelRequest(
    candidates as Candidates,
    {
      target,
      ranks,
      copyOn: ({ copy }) => copy,
      isBusyWith: ({ isBusyWith }) => isBusyWith,
      requestsOn: ({ requestCount }) => requestCount,
      hasMemoryOn: ({ hasRoom }) => hasRoom,
    },
    modelRoutingLimits,
  );
const targets = Array.from({ length: 4000 }, (_, index) => `tenants/${index}.tar.gz`);

const anyCandidates = fc.uniqueArray(fc.nat(100), { minLength: 1, maxLength: 40 }).chain((ordinals) =>
  fc.tuple(
    ...ordinals.map((ordinal) =>
      fc.record({
        ordinal: fc.constant(ordinal),
        inFlightCount: fc.nat(60),
        copy: fc.constantFrom<ModelCopyState>("loaded", "coming", "absent"),
        isBusyWith: fc.boolean(),
        requestCount: fc.nat(40),
        hasRoom: fc.boolean(),
      }),
    ),
  ),
) as unknown as fc.Arbitrary<Candidates>;

/** Returns the instances in the order of their rank, computed one by one. */
function byRank(candidates: readonly Candidate[], target: string): readonly Candidate[] {
  const rank = new ModelRank(key, target);
  return candidates.toSorted((a, b) => rank.scoreOf(b.ordinal) - rank.scoreOf(a.ordinal) || a.ordinal - b.ordinal);
}

test("adding an instance moves only its share of the models, and all of them to the new instance", () => {
  for (const count of [2, 3, 4, 9, 33]) {
    const candidates = candidatesOf(count);
    const moved = targets.filter((target) => {
      const before = place(candidates.slice(0, -1), target).serve;
      const after = place(candidates, target).serve;
      // If the instance of a model changes, it must be the new one.
      if (before !== after) assert.equal(after, candidates.at(-1));
      return before !== after;
    });
    const share = moved.length / targets.length;
    assert.ok(Math.abs(share - 1 / count) < 0.25 / count + 0.01, `${share} of the models moved to one of ${count}`);
  }
});

test("models are spread evenly over the instances, whatever their names are", () => {
  for (const names of [
    targets,
    targets.map((_, index) => String(index)),
    targets.map((_, index) => "m".repeat(index)),
  ]) {
    const held = new Map<number, number>();
    for (const target of names) {
      const { ordinal } = place(candidatesOf(5), target).serve;
      held.set(ordinal, (held.get(ordinal) ?? 0) + 1);
    }
    for (const count of held.values()) assert.ok(count > 650 && count < 950, [...held.values()].join(" "));
  }
});

test("property: an instance over its busy threshold gets a request only if no free instance has the model or may load it", () => {
  fc.assert(
    fc.property(anyCandidates, fc.string(), (candidates, target) => {
      const { serve, bring } = place(candidates, target);
      const bound = busyThreshold(
        candidates.reduce((sum, { inFlightCount }) => sum + inFlightCount, 0),
        candidates.length,
        modelRoutingLimits,
      );
      const having = candidates.filter(({ copy }) => copy !== "absent");
      const loaded = candidates.filter(({ copy }) => copy === "loaded");
      // A request never goes to an instance without the model while another has it. No request waits for an additional
      // copy.
      if (loaded.length > 0) assert.equal(serve.copy, "loaded");
      else if (having.length > 0) assert.equal(serve.copy, "coming");
      const isFree = ({ inFlightCount }: Candidate) => inFlightCount < bound;
      const requestCount = having.reduce((sum, each) => sum + each.requestCount, 0);
      const desiredCount = Math.max(loaded.length + 1, Math.ceil(requestCount / bound));
      const missing = Math.min(desiredCount, modelCopiesMax(candidates.length)) - having.length;
      const left = Math.max(0, Math.min(missing, copiesPerRequestMax));
      for (const each of bring) assert.deepEqual([each.copy, each.hasRoom, isFree(each)], ["absent", true, true]);
      assert.ok(new Set(bring).size === bring.length && bring.length <= left);
      if (loaded.length === 0) assert.deepEqual(bring, []);
      if (isFree(serve)) return;
      assert.ok(having.length > 0);
      assert.ok(loaded.every(({ inFlightCount }) => inFlightCount >= serve.inFlightCount));
      if (!serve.isBusyWith || loaded.length === 0) return assert.deepEqual(bring, []);
      // The copies go to the highest-ranked free instances with memory. The search ends after some without memory.
      const expected: Candidate[] = [];
      let fullCount = 0;
      for (const each of byRank(candidates, target)) {
        if (each.copy !== "absent" || !isFree(each)) continue;
        if (expected.length === left || fullCount === fullInstancesMax) break;
        if (each.hasRoom) expected.push(each);
        else fullCount += 1;
      }
      assert.deepEqual(bring, expected);
    }),
    { numRuns: 3000 },
  );
});

test("property: routing does not depend on the order of the instances", () => {
  fc.assert(
    fc.property(anyCandidates, fc.string(), fc.nat(100), (candidates, target, tick) => {
      const from = tick % candidates.length;
      const turned = [...candidates.slice(from), ...candidates.slice(0, from)];
      const { serve, bring } = place(candidates, target);
      assert.deepEqual(place(candidates, target), { serve, bring });
      assert.deepEqual(place(turned, target), { serve, bring });
      assert.deepEqual(place(turned.toReversed(), target), { serve, bring });
    }),
  );
});

test("property: remembered ranks give the decisions of computed ones while instances come and go", () => {
  fc.assert(
    fc.property(anyCandidates, fc.array(fc.tuple(fc.nat(39), fc.nat(2))), (all, asked) => {
      const ranks = new ModelRanks(key);
      for (const [without, model] of asked) {
        const candidates = all.length === 1 ? all : all.filter((_, index) => index !== without);
        const target = targets[model] ?? "";
        assert.deepEqual(place(candidates, target, ranks), place(candidates, target));
        assert.deepEqual(place(all, target, ranks), place(all, target));
      }
    }),
  );
});

test("a model gets as many copies at once as its requests in flight need", () => {
  const candidates = candidatesOf(20).map((each, ordinal) =>
    ordinal === 7 ? { ...each, copy: "loaded" as const, inFlightCount: 40, requestCount: 40 } : each,
  );
  const { bring } = place(candidates, "hot");
  // 40 requests at 8 for each instance.
  assert.equal(bring.length, 4);
  const coming = candidates.map((each) => (bring.includes(each) ? { ...each, copy: "coming" as const } : each));
  assert.deepEqual(place(coming, "hot").bring, []);
});

test("a copy goes to the next instance if the highest-ranked one has no memory for it", () => {
  const candidates = candidatesOf(8).map((each) => ({ ...each, copy: "absent" as ModelCopyState }));
  const [first, second, third] = byRank(candidates, "hot");
  Object.assign(first!, { copy: "loaded", inFlightCount: 8, requestCount: 8 });
  Object.assign(second!, { hasRoom: false });
  assert.deepEqual(place(candidates, "hot"), { serve: first, bring: [third] });
});

/** Simulates requests that stay in flight for a while, with loads that take no time. */
class Simulated {
  readonly #instances: readonly {
    readonly ordinal: number;
    inFlightCount: number;
    readonly models: Map<string, number>;
    readonly requested: string[];
  }[];
  readonly #underWay: (() => void)[] = [];
  readonly #ranks = new ModelRanks(key);
  loadCount = 0;
  #now = 0;

  constructor(count: number) {
    this.#instances = Array.from({ length: count }, (_, ordinal) => ({
      ordinal,
      inFlightCount: 0,
      models: new Map(),
      requested: [],
    }));
  }

  get inFlight(): readonly number[] {
    return this.#instances.map(({ inFlightCount }) => inFlightCount);
  }

  copies(target: string): number {
    return this.#instances.filter(({ models }) => models.has(target)).length;
  }

  /** Routes a request. Returns the numbers of requests in flight before it. */
  call(target: string): {
    readonly before: { readonly all: readonly number[]; readonly chosen: number; readonly isBusyWith: boolean };
  } {
    this.#now += 1;
    const all = this.inFlight;
    const [first, ...more] = this.#instances;
    assert(first !== undefined);
    const isBusyWith = ({ requested: asked }: typeof first) =>
      asked.filter((each) => each === target).length * new Set(asked).size >= asked.length;
    const { serve, bring } = routeModelRequest(
      [first, ...more],
      {
        target,
        ranks: this.#ranks,
        copyOn: ({ models }) => (models.has(target) ? "loaded" : "absent"),
        isBusyWith,
        requestsOn: ({ requested }) => requested.filter((each) => each === target).length,
        hasMemoryOn: () => true,
      },
      modelRoutingLimits,
    );
    for (const each of new Set([serve, ...bring])) {
      if (!each.models.has(target)) this.loadCount += 1;
      if (each === serve || !each.models.has(target)) each.models.set(target, this.#now);
    }
    const before = { all, chosen: serve.inFlightCount, isBusyWith: isBusyWith(serve) };
    serve.inFlightCount += 1;
    serve.requested.push(target);
    this.#underWay.push(() => {
      serve.inFlightCount -= 1;
      serve.requested.splice(serve.requested.indexOf(target), 1);
    });
    return { before };
  }

  respond(keeping: number): void {
    while (this.#underWay.length > keeping) this.#underWay.shift()?.();
  }

  /** Removes all copies of a model except the first that were not used since `sinceTick`. */
  dropCold(sinceTick: number, target: string): void {
    const having = this.#instances.filter(({ models }) => models.has(target));
    const [first, ...more] = having;
    if (first === undefined) return;
    const stays = highestRanked([first, ...more], { key, target });
    for (const each of having)
      if (each !== stays && (each.models.get(target) ?? 0) < sinceTick) each.models.delete(target);
  }
}

test("a model with few requests stays on one instance; a busy one gets copies up to its limit, which are dropped when it is idle", () => {
  const simulated = new Simulated(6);
  for (let index = 0; index < 200; index += 1) {
    simulated.call("hot");
    simulated.respond(modelRoutingLimits.queueMin - 1);
  }
  assert.deepEqual([simulated.copies("hot"), simulated.loadCount], [1, 1]);
  for (let index = 0; index < 400; index += 1) {
    simulated.call("hot");
    simulated.respond(100);
  }
  assert.deepEqual([simulated.copies("hot"), simulated.loadCount], [3, 3]);
  // The instances with a copy share the requests evenly.
  const busy = simulated.inFlight.filter((count) => count > 0).toSorted((a, b) => a - b);
  assert.deepEqual(busy, [33, 33, 34]);
  simulated.respond(0);
  for (let index = 0; index < 100; index += 1) {
    simulated.call("hot");
    simulated.respond(1);
  }
  simulated.dropCold(600, "hot");
  assert.deepEqual([simulated.copies("hot"), simulated.loadCount], [1, 3]);
});

test("property: requests exceed an instance's busy threshold at most once for each copy that is made", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 8 }),
      fc.array(fc.nat(40), { minLength: 300, maxLength: 300 }),
      (count, requestCount) => {
        const simulated = new Simulated(count);
        let beyondCount = 0;
        for (const model of requestCount) {
          const target = targets[model] ?? "";
          const mayHaveMore = simulated.copies(target) < modelCopiesMax(count);
          const { before } = simulated.call(target);
          const sum = before.all.reduce((all, each) => all + each, 0);
          if (mayHaveMore && before.isBusyWith && before.chosen >= busyThreshold(sum, count, modelRoutingLimits))
            beyondCount += 1;
          simulated.respond(10 * count);
        }
        assert.ok(beyondCount <= simulated.loadCount - new Set(requestCount).size);
        assert.ok(simulated.loadCount <= 41 * modelCopiesMax(count));
      },
    ),
    { numRuns: 100 },
  );
});
