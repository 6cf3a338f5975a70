import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { chooseRun, type ActiveRun, type RunOwner, type RunLimits, type WaitingOwner } from "./choose-run.ts";

const limits: RunLimits = { slotCount: 2, longNs: 100, modelRunsMax: 3, tenantRunsMax: 4, runsMax: 8 };
const run = (tenant: number, sinceNs: number, model = "m") => ({ owner: { tenant, model }, sinceNs });
const wait = (tenant: number, usedNs = 0, model = "m") => ({ owner: { tenant, model }, usedNs });
const admit = (tenant: number, model = "m") => ({ kind: "admit", owner: { tenant, model } });
const choose = (running: readonly ActiveRun[], waiting: readonly WaitingOwner<RunOwner>[], nowNs = 1000) =>
  chooseRun({ running, waiting, nowNs }, limits);

test("a tenant runs at once while a slot is free", () => {
  assert.deepEqual(choose([run(1, 950)], [wait(2)]), admit(2));
});

test("of waiting tenants the one whose runs, including current ones, took least time is next", () => {
  assert.deepEqual(choose([], [wait(1, 500), wait(2, 300), wait(3, 300)]), admit(2));
  assert.deepEqual(choose([run(2, 0)], [wait(1, 500), wait(2, 300)]), admit(1));
});

test("if all slots are taken, the decision is repeated when the oldest run becomes long", () => {
  assert.deepEqual(choose([run(1, 950), run(2, 980)], [wait(3)]), { kind: "later", atNs: 1050 });
});

test("long runs have no slot", () => {
  assert.deepEqual(choose([run(1, 0), run(1, 0), run(1, 990)], [wait(2)]), admit(2));
});

test("a tenant at its limit of runs waits for one of them and does not block other tenants", () => {
  const four = [run(1, 0), run(1, 0), run(1, 0), run(1, 0, "n")];
  assert.deepEqual(choose(four, [wait(1)]), { kind: "later", atNs: null });
  assert.deepEqual(choose(four, [wait(1), wait(2, 10_000)]), admit(2));
});

test("a model at its limit of runs does not block its tenant's other models", () => {
  const three = [run(1, 0), run(1, 0), run(1, 0)];
  assert.deepEqual(choose(three, [wait(1)]), { kind: "later", atNs: null });
  assert.deepEqual(choose(three, [wait(1), wait(1, 0, "n")]), admit(1, "n"));
});

test("the number of runs never exceeds the number of threads", () => {
  const eight = Array.from({ length: 8 }, (_, index) => run(index, 0));
  assert.deepEqual(choose(eight, [wait(9)]), { kind: "later", atNs: null });
});

test("property: for any requests in any order the limits hold, and no run waits while it could start", () => {
  const step = fc.record({ tenant: fc.nat(4), model: fc.nat(1), ends: fc.boolean(), passesNs: fc.nat(150) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const running: ActiveRun[] = [];
      const waiting = new Map<string, RunOwner>();
      let nowNs = 0;
      const count = (wanted: (owner: RunOwner) => boolean) => running.filter(({ owner }) => wanted(owner)).length;
      const isFull = ({ tenant, model }: RunOwner) =>
        count((each) => each.tenant === tenant) >= limits.tenantRunsMax ||
        count((each) => each.tenant === tenant && each.model === model) >= limits.modelRunsMax;
      for (const { tenant, model, ends, passesNs } of steps) {
        nowNs += passesNs;
        if (ends) running.shift();
        else waiting.set(`${tenant} ${model}`, { tenant, model: String(model) });
        for (;;) {
          const all = [...waiting.values()].map((owner) => ({ owner, usedNs: 0 }));
          const choice = chooseRun({ running, waiting: all, nowNs }, limits);
          if (choice.kind === "later") break;
          assert.ok(!isFull(choice.owner), "its limits hold");
          assert.ok(waiting.delete(`${choice.owner.tenant} ${choice.owner.model}`), "only who waits is let in");
          running.push({ owner: choice.owner, sinceNs: nowNs });
        }
        const short = running.filter(({ sinceNs }) => nowNs - sinceNs < limits.longNs).length;
        assert.ok(running.length <= limits.runsMax && short <= limits.slotCount);
        const mayWait =
          running.length === limits.runsMax || short === limits.slotCount || [...waiting.values()].every(isFull);
        assert.ok(mayWait, "somebody waits for nothing");
      }
    }),
  );
});
