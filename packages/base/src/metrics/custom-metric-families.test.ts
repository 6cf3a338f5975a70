import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { InferenceError } from "../core/index.ts";
import { printNumber } from "./exposition.ts";
import {
  CustomMetricFamilies,
  type CustomMetricLimits,
  type NamespaceMetricFamilies,
  type AllocateSharedCells,
} from "./custom-metric-families.ts";
import { gaugeCells } from "./series-cells.ts";

const limits: CustomMetricLimits = { linesMax: 100, textLengthMax: 1000, writersMax: 100, bytesMax: 1e6, boundsMax: 4 };
const counter = { name: "asked", description: "number of requests", kind: "counter" } as const;
const gauge = { name: "level", description: "", kind: "gauge" } as const;
const histogram = { name: "took", description: "", kind: "histogram" } as const;
const noLabels = new Map<string, string>();

/** Returns an allocator of cells that counts the allocated cells. */
function memory() {
  const state = { taken: 0 };
  const take: AllocateSharedCells = (count) => {
    state.taken++;
    return { cells: new Float64Array(count), byteOffset: 8 * state.taken, [Symbol.dispose]: () => void state.taken-- };
  };
  return { state, take };
}

function opened(namespace = "", more: Partial<CustomMetricLimits> = {}) {
  const { state, take } = memory();
  const all = new CustomMetricFamilies((name) => name === "nv_count" || name === "nv_took_sum");
  const families = all.open(namespace, { ...limits, ...more }, take);
  return { all, families, state, take, text: () => [...all.print()].join("") };
}

const refused = (work: () => unknown, code: string, message: string | RegExp) =>
  assert.throws(
    work,
    (error) => error instanceof InferenceError && error.code === code && !!error.message.match(message),
  );

test("holders of equal labels share one series, which keeps its value while one of them remains", () => {
  const { families, state, text } = opened();
  const [first, second] = [families.family(counter), families.family({ ...counter, description: "other words" })];
  const mine = first.openSeries(new Map([["a", "1"]]), []);
  const other = second.openSeries(new Map([["a", "1"]]), []);
  mine.cells[0] = 3;
  other.cells[0] = 4;
  assert.deepEqual([mine.value(), other.value()], [7, 7]);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  assert.equal(other.value(), 7);
  assert.equal(text(), '# HELP asked number of requests\n# TYPE asked counter\nasked{a="1"} 7\n');
  second[Symbol.dispose]();
  assert.equal(text(), "");
  assert.equal(state.taken, 0);
  assert.equal(
    families
      .family({ ...counter, kind: "gauge" })
      .openSeries(noLabels, [])
      .value(),
    0,
  );
});

test("a histogram is printed with cumulative buckets, and a bound of +Inf adds no bucket", () => {
  const { families, text } = opened();
  const held = families.family(histogram);
  const part = held.openSeries(new Map([["b", 'q"\\\n']]), [0.5, 2, Infinity]);
  assert.deepEqual(part.bounds, [0.5, 2]);
  part.cells.set([7.25, 1, 0, 2]);
  assert.deepEqual(held.openSeries(new Map([["b", 'q"\\\n']]), [9]).bounds, [0.5, 2]);
  refused(() => part.value(), "UNSUPPORTED", "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Value");
  const label = 'b="q\\"\\\\\\n"';
  assert.equal(
    text().split("# TYPE took histogram\n")[1],
    `took_count{${label}} 3\ntook_sum{${label}} 7.25\ntook_bucket{${label},le="0.5"} 1\n` +
      `took_bucket{${label},le="2"} 1\ntook_bucket{${label},le="+Inf"} 3\n`,
  );
});

test("invalid names, labels and bounds are rejected with Triton's texts and use no capacity", () => {
  const { families, state, text } = opened("tenant");
  for (const name of ["", "a b", "1a", "__a", "grü", "a\u0000b", "a\n"])
    refused(() => families.family({ ...counter, name }), "INVALID_ARG", /^Invalid metric name$/);
  const held = families.family(histogram);
  for (const label of ["", "a b", "1a", "__a", "a:b", "le", "namespace"])
    refused(() => held.openSeries(new Map([[label, ""]]), []), "INVALID_ARG", /^Invalid label name$/);
  for (const bounds of [[2, 1], [1, 1], [NaN, 1], [1, NaN], [NaN]])
    refused(() => held.openSeries(noLabels, bounds), "INVALID_ARG", /^Bucket Boundaries must be strictly sorted$/);
  refused(() => held.openSeries(noLabels, [1, 2, 3, 4, 5]), "INVALID_ARG", "at most 4");
  refused(
    () => families.family({ ...histogram, kind: "counter" }),
    "INVALID_ARG",
    /^Family name already exists with different type$/,
  );
  refused(() => families.family({ ...counter, name: "nv_count" }), "INVALID_ARG", "are the server's own");
  refused(() => families.family({ ...histogram, name: "nv_took" }), "INVALID_ARG", "are the server's own");
  assert.equal(
    families
      .family({ ...counter, name: "nv_own:x" })
      .openSeries(noLabels, [])
      .value(),
    0,
  );
  assert.deepEqual(
    [state.taken, text()],
    [1, '# HELP nv_own:x number of requests\n# TYPE nv_own:x counter\nnv_own:x{namespace="tenant"} 0\n'],
  );
});

test("each limit holds, and removed entries free capacity", () => {
  const over = (more: Partial<CustomMetricLimits>, fill: (families: NamespaceMetricFamilies) => Disposable) => {
    const { families, state } = opened("", more);
    const held = families.family(counter);
    refused(() => fill(families), "UNAVAILABLE", "limit reached");
    held[Symbol.dispose]();
    assert.equal(state.taken, 0);
    fill(families)[Symbol.dispose]();
  };
  const parts = (families: NamespaceMetricFamilies, count: number) => {
    const held = families.family(counter);
    try {
      for (let index = 0; index < count; index++) held.openSeries(new Map([["n", String(index)]]), []);
      return held;
    } catch (error) {
      held[Symbol.dispose]();
      throw error;
    }
  };
  over({ writersMax: 5 }, (families) => parts(families, 4));
  over({ textLengthMax: 2 * counter.name.length + 2 * counter.description.length - 1 }, (families) =>
    families.family({ ...counter, name: "other" }),
  );
  const small = opened("", { bytesMax: 4 * 256 }).families;
  refused(() => parts(small, 5), "UNAVAILABLE", "1024 bytes of metrics");
  parts(small, 4);
  const { families } = opened("", { linesMax: 3 });
  refused(() => parts(families, 4), "UNAVAILABLE", "3 lines of metrics");
  parts(families, 3);
});

test("a series for which memory is missing is not created", () => {
  const all = new CustomMetricFamilies(() => false);
  let capacity = 1;
  const families = all.open("", { ...limits, linesMax: 1 }, (count) => {
    if (capacity-- <= 0) throw new InferenceError("UNAVAILABLE", "full");
    return { cells: new Float64Array(count), byteOffset: 0, [Symbol.dispose]: () => void capacity++ };
  });
  const held = families.family(gauge);
  refused(() => held.openSeries(noLabels, []), "UNAVAILABLE", "full");
  capacity = 2;
  assert.equal(held.openSeries(noLabels, []).value(), 0);
});

test("namespaces do not see or change each other's metrics, and a name used with different types is untyped", () => {
  const { all, take, text } = opened();
  const first = all.open("one", limits, take);
  const second = all.open("two", limits, take);
  const mine = first.family(counter).openSeries(noLabels, []);
  mine.cells[0] = 5;
  const theirs = second.family(counter).openSeries(new Map([["a", "b"]]), []);
  assert.equal(theirs.value(), 0);
  assert.equal(
    text(),
    '# HELP asked number of requests\n# TYPE asked counter\nasked{namespace="one"} 5\nasked{a="b",namespace="two"} 0\n',
  );
  second.family({ ...gauge, name: "both" }).openSeries(noLabels, []);
  first.family({ ...histogram, name: "both" }).openSeries(noLabels, [1]);
  assert.match(text(), /# TYPE both untyped\nboth_count\{namespace="one"\} 0\n/);
  first[Symbol.dispose]();
  assert.doesNotMatch(text(), /one/);
});

test("a line break in a description is escaped", () => {
  const { families, text } = opened();
  families.family({ ...counter, description: "x\nnv_count 7\\" }).openSeries(noLabels, []);
  assert.equal(text(), "# HELP asked x\\nnv_count 7\\\\\n# TYPE asked counter\nasked 0\n");
});

test("long expositions are written in chunks, and series removed between two chunks are left out", () => {
  const { families, all } = opened("", { linesMax: 3000, writersMax: 5000, textLengthMax: 1e6 });
  const held = families.family(counter);
  for (let index = 0; index < 2500; index++) held.openSeries(new Map([["n", String(index)]]), []);
  const segments = all.print();
  assert.equal((segments.next().value as string).split("\n").length, 1003);
  held[Symbol.dispose]();
  assert.equal([...segments].join(""), "");
});

test("numbers are printed as C's %.16g prints them", () => {
  const cases: [number, string][] = [
    [0, "0"],
    [-0, "-0"],
    [1, "1"],
    [1e6, "1000000"],
    [123456.5, "123456.5"],
    [0.1 + 0.2, "0.3"],
    [1 / 3, "0.3333333333333333"],
    [-2.5, "-2.5"],
    [1e-4, "0.0001"],
    [1.25e-5, "1.25e-05"],
    [1e-7, "1e-07"],
    [1e16, "1e+16"],
    [1e15, "1000000000000000"],
    [Number(123456789012345678n), "1.234567890123457e+17"],
    [1.5e300, "1.5e+300"],
    [NaN, "Nan"],
    [Infinity, "+Inf"],
    [-Infinity, "-Inf"],
    [999999999999999.9, "999999999999999.9"],
    [0.00012345, "0.00012345"],
  ];
  assert.deepEqual(
    cases.map(([value]) => printNumber(value)),
    cases.map(([, text]) => text),
  );
});

/** A writer that accesses its cells as `galatea_worker/metrics.py` does. */
class Holder {
  readonly #held;
  readonly #part;
  readonly #shared: Float64Array;
  #settings = 0;

  constructor(families: NamespaceMetricFamilies, sharedAt: (byteOffset: number) => Float64Array) {
    this.#held = families.family(gauge);
    this.#part = this.#held.openSeries(noLabels, []);
    this.#shared = sharedAt(this.#part.sharedByteOffset);
  }

  set(value: number): void {
    const setting = this.#part.id * 2 ** 32 + ++this.#settings;
    const { cells } = this.#part;
    [cells[gaugeCells.value], cells[gaugeCells.increments], cells[gaugeCells.setting]] = [value, 0, setting];
    this.#shared[0] = setting;
  }

  increment(amount: number): void {
    const { cells } = this.#part;
    if (cells[gaugeCells.setting] !== this.#shared[0]) {
      cells[gaugeCells.increments] = 0;
      cells[gaugeCells.setting] = this.#shared[0]!;
    }
    cells[gaugeCells.increments]! += amount;
  }

  value = () => this.#part.value();
  end = () => this.#held[Symbol.dispose]();
}

test("property: a gauge is the last set value plus later additions, for any holders", () => {
  const transition = fc.record({
    who: fc.nat({ max: 3 }),
    what: fc.constantFrom("set", "increment", "increment", "end"),
    amount: fc.integer({ min: -5, max: 5 }),
  });
  fc.assert(
    fc.property(fc.array(transition, { maxLength: 40 }), (transitions) => {
      const cells = new Map<number, Float64Array>();
      const families = new CustomMetricFamilies(() => false).open("", { ...limits, writersMax: 1000 }, (count) => {
        const byteOffset = 8 * (cells.size + 1);
        cells.set(byteOffset, new Float64Array(count));
        return { cells: cells.get(byteOffset)!, byteOffset, [Symbol.dispose]() {} };
      });
      const make = () => new Holder(families, (byteOffset) => cells.get(byteOffset)!);
      // This writer exists during the whole test, because a series is removed with its last writer.
      const watching = make();
      const holders = new Map<number, Holder>();
      let expected = 0;
      for (const { who, what, amount } of transitions) {
        const holder = holders.get(who) ?? make();
        holders.set(who, holder);
        if (what === "end") {
          holder.end();
          holders.delete(who);
        } else if (what === "set") {
          holder.set(amount);
          expected = amount;
        } else {
          holder.increment(amount);
          expected += amount;
        }
        assert.equal(watching.value(), expected);
      }
    }),
  );
});
