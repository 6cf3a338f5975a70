import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { printJsonData } from "./json-data-fixture.ts";
import { JsonDataPrinter } from "./json-print.ts";
import { JsonSink } from "./json-sink.ts";

function print(datatype: "FP32" | "FP64", values: Float32Array | Float64Array): string[] {
  const sink = new JsonSink();
  printJsonData(sink, datatype, new Uint8Array(values.buffer));
  const text = sink.take();
  const complete = typeof text === "string" ? text : Buffer.concat(text).toString("latin1");
  return complete.slice(1, -1).split(",");
}

test("long tensors, for which the texts of repeated numbers are cached, print like each number alone", () => {
  const bits = (...words: readonly number[]) => new Float32Array(Int32Array.from(words).buffer);
  const special = [...bits(0, 1, -2147483648, 2139095040, -8388608, 8388608, -2139095041), 0.1, -0.1, 3e38, 1e9, 0.5];
  const pixels = Array.from({ length: 700 }, (_, index) => Math.fround(index / 255 - 1));
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const few = Float32Array.from({ length: 40_000 }, () =>
    random() < 0.1
      ? (special[Math.floor(random() * special.length)] as number)
      : (pixels[Math.floor(random() * 700)] as number),
  );
  few.set([Number.NaN], 39_000);
  const many = Float32Array.from({ length: 40_000 }, random);
  const first = Float32Array.from(few);
  first.set(many.subarray(0, 20_000), 20_000);
  for (const values of [few, many, first]) {
    const sink = new JsonSink();
    const printing = new JsonDataPrinter(sink, { datatype: "FP32", data: new Uint8Array(values.buffer) });
    while (!printing.advance(4000));
    const text = Buffer.concat(sink.take() as readonly Buffer[]).toString("latin1");
    // The four parts are too short for the cache, so they are printed without it.
    const each = [0, 1, 2, 3].flatMap((part) => print("FP32", values.slice(part * 10_000, (part + 1) * 10_000)));
    assert.equal(text, `[${each.join(",")}]`);
  }
});

/** Numbers with the texts that the published method prints; not all of the texts are the shortest. */
const floats: readonly (readonly [number, string])[] = [
  [0, "0.0"],
  [-0, "-0.0"],
  [1, "1.0"],
  [-7, "-7.0"],
  [0.3, "0.30000001192092898"],
  [0.1, "0.10000000149011612"],
  [-0.0123, "-0.012299999594688416"],
  [16777216, "16777216.0"],
  [123456.789, "123456.7890625"],
  [1e9, "1000000000.0"],
  [3e9, "3000000000.0"],
  [1e-5, "0.000009999999747378752"],
  [1e-6, "9.999999974752428e-7"],
  [9.9e-7, "9.899999895424117e-7"],
  [1e20, "100000002004087730000.0"],
  [1e21, "1.0000000200408774e21"],
  [1e22, "9.999999778196309e21"],
  [2 ** -126, "1.1754943508222876e-38"],
  [2 ** -149, "1.401298464324817e-45"],
  [1.1754942e-38, "1.1754942106924411e-38"],
  [3.4028234663852886e38, "3.4028234663852887e38"],
  [2 ** 64, "18446744073709553000.0"],
  [2 ** -30, "9.313225746154786e-10"],
  [NaN, "NaN"],
  [Infinity, "Infinity"],
  [-Infinity, "-Infinity"],
];

const doubles: readonly (readonly [number, string])[] = [
  [0.1, "0.1"],
  [0.30000001192092896, "0.30000001192092898"],
  [1.5, "1.5"],
  [123456789.125, "123456789.125"],
  [1e20, "100000000000000000000.0"],
  [1e21, "1e21"],
  [1.2345e21, "1.2344999999999999e21"],
  [1e-6, "0.000001"],
  [1e-7, "1e-7"],
  [5e-324, "5e-324"],
  [2.2250738585072014e-308, "2.2250738585072014e-308"],
  [2.225073858507201e-308, "2.225073858507201e-308"],
  [1.7976931348623157e308, "1.7976931348623157e308"],
  [9007199254740992, "9007199254740992.0"],
  [2 ** 70, "1.1805916207174114e21"],
  [2 ** -70, "8.470329472543004e-22"],
  [4.35, "4.35"],
  [0.000123456789, "0.000123456789"],
];

test("numbers print as in Triton: ends of the range, powers of two, both forms, a last digit not rounded", () => {
  for (const [datatype, rows, Typed] of [
    ["FP32", floats, Float32Array],
    ["FP64", doubles, Float64Array],
  ] as const) {
    const printed = print(datatype, Typed.from(rows.map(([value]) => value)));
    assert.deepEqual(
      printed,
      rows.map(([, text]) => text),
    );
  }
});

test("any bits of a finite float or double print as a number that reads back as the same", () => {
  const words = fc.array(fc.integer({ min: 0, max: 0xffff_ffff }), { minLength: 2, maxLength: 64 });
  fc.assert(
    fc.property(words, (list) => {
      const bits = Uint32Array.from(list.slice(0, list.length & ~1));
      for (const [datatype, values] of [
        ["FP32", new Float32Array(bits.buffer)],
        ["FP64", new Float64Array(bits.buffer)],
      ] as const) {
        assert.deepEqual(print(datatype, values).map(Number), [...values]);
      }
    }),
    { numRuns: 500 },
  );
});

test("every exponent's first, second and last float prints as a number that reads back as the same", () => {
  const bits = Uint32Array.from({ length: 255 * 3 }, (_, i) => (Math.floor(i / 3) << 23) | [0, 1, 0x7f_ffff][i % 3]!);
  const values = new Float32Array(bits.buffer);
  assert.deepEqual(print("FP32", values).map(Number), [...values]);
});
