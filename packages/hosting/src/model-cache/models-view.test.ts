import assert from "node:assert/strict";
import { test } from "node:test";
import { ModelsView, type ModelState } from "./models-view.ts";

const loaded = (id: string, more: Partial<ModelState> = {}): ModelState => ({
  id,
  target: id,
  isLoaded: true,
  isLoading: false,
  isCurrent: true,
  ownBytes: 40,
  wholeBytes: 45,
  pinCount: 0,
  usedNs: 1,
  ...more,
});

test('a model\'s copy is "coming" while it loads or a request waits for it, then "loaded", and otherwise "absent"', () => {
  const view = new ModelsView({ keepsModels: true });
  assert.equal(view.copyOf("a"), "absent");
  const waiting = view.demand.begin("a");
  assert.equal(view.copyOf("a"), "coming");
  waiting[Symbol.dispose]();
  assert.equal(view.copyOf("a"), "absent");
  view.changed(loaded("a", { isLoaded: false, isLoading: true, ownBytes: 0, wholeBytes: 0 }));
  assert.deepEqual([view.copyOf("a"), view.loadedCount, view.memoryBytesOf("a")], ["coming", 0, 0]);
  view.changed(loaded("a"));
  assert.deepEqual([view.copyOf("a"), view.loadedCount, view.memoryBytesOf("a")], ["loaded", 1, 45]);
  // A new version replaces an old version that still has a request in flight.
  view.changed(loaded("a", { isCurrent: false, pinCount: 1 }));
  assert.equal(view.copyOf("a"), "absent");
  view.changed(loaded("new", { target: "a" }));
  view.changed(loaded("a", { isLoaded: false, isCurrent: false }));
  assert.deepEqual([view.copyOf("a"), view.loadedCount], ["loaded", 1]);
  view.clear();
  assert.deepEqual([view.copyOf("a"), view.loadedCount], ["absent", 0]);
});

test("isBusyWith is true for the models that most of a container's requests are for", () => {
  const view = new ModelsView({ keepsModels: true });
  const one = view.demand.begin("a");
  assert.deepEqual([view.isBusyWith("a"), view.isBusyWith("b")], [true, false]);
  const others = [view.demand.begin("b"), view.demand.begin("b")];
  assert.deepEqual([view.isBusyWith("a"), view.isBusyWith("b")], [false, true]);
  for (const each of [one, ...others]) each[Symbol.dispose]();
  assert.equal(view.demand.of("a") + view.demand.of("b"), 0);
});

test("hasRoomFor counts free memory and idle models that were not used since the given time", () => {
  const view = new ModelsView({ keepsModels: true });
  view.resized({ usedBytes: 80, capacityBytes: 100 });
  view.changed(loaded("a", { pinCount: 1 }));
  view.changed(loaded("b", { pinCount: 2 }));
  assert.deepEqual([view.hasMemoryFor(20, 1), view.hasMemoryFor(21, Infinity)], [true, false]);
  view.used("b", 0, 5);
  assert.deepEqual(
    [view.hasMemoryFor(60, 4), view.hasMemoryFor(60, 5), view.hasMemoryFor(61, Infinity)],
    [false, true, false],
  );
  // A request makes a model the most recently used one.
  view.used("a", 0, 6);
  view.used("b", 1, 7);
  view.used("b", 0, 8);
  assert.deepEqual(
    view.loadedModels().map(({ id, pinCount, usedNs }) => [id, pinCount, usedNs]),
    [
      ["a", 0, 6],
      ["b", 0, 8],
    ],
  );
  assert.equal(view.hasMemoryFor(60, 6), true);
});
