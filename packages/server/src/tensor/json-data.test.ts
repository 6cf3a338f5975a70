import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { printJsonData, readJsonData } from "./json-data-fixture.ts";
import { jsonBytesLengthMax, type JsonDataTarget } from "./json-data.ts";
import { JsonScanner, JsonSyntaxError } from "./json-scanner.ts";
import { JsonSink } from "./json-sink.ts";

function read(text: string, datatype: JsonDataTarget["datatype"], count: number, elementBytes: number): Uint8Array {
  const bytes = Buffer.from(text);
  new JsonScanner(bytes).skipValue();
  const into = new Uint8Array(elementBytes === 0 ? jsonBytesLengthMax(bytes.length) : count * elementBytes);
  const used = readJsonData(new JsonScanner(bytes), { datatype, count, into });
  return into.subarray(0, used);
}

function print(datatype: JsonDataTarget["datatype"], data: Uint8Array): string {
  const sink = new JsonSink();
  printJsonData(sink, datatype, data);
  const text = sink.take();
  return typeof text === "string" ? Buffer.from(text, "latin1").toString() : Buffer.concat(text).toString();
}

/** Different texts of the same number: plain, with an exponent, with more digits. */
const spelled = fc
  .tuple(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constantFrom("plain", "exponent", "long"))
  .map(([value, style]) => {
    if (style === "plain") return Object.is(value, -0) ? "-0" : String(value);
    return style === "exponent" ? value.toExponential() : value.toPrecision(21);
  });

test("doubles in any spelling are read as JSON.parse reads them, and printed so that they read back", () => {
  fc.assert(
    fc.property(fc.array(spelled, { maxLength: 40 }), (texts) => {
      const expected = Float64Array.from(texts.map(Number));
      const data = read(`[${texts.join(" , ")}]`, "FP64", texts.length, 8);
      assert.deepEqual(new Float64Array(data.slice().buffer), expected);
      const printed = JSON.parse(print("FP64", data)) as number[];
      assert.deepEqual(Float64Array.from(printed), expected);
    }),
  );
});

test("a FP32 element is the float nearest to the decimal, not the float of a rounded double", () => {
  fc.assert(
    fc.property(fc.array(spelled, { maxLength: 40 }), (texts) => {
      const data = read(`[${texts.join(",")}]`, "FP32", texts.length, 4);
      assert.deepEqual(
        new Float32Array(data.slice().buffer),
        Float32Array.from(texts.map((text) => Math.fround(Number(text)))),
      );
    }),
  );
});

test("FP32 elements next to the middle between two floats are rounded from the decimal", () => {
  const middles = fc
    .tuple(fc.float({ noNaN: true, noDefaultInfinity: true }), fc.integer({ min: 1, max: 21 }))
    .filter(([value]) => Math.abs(value) > 1e-20 && Math.abs(value) < 1e20)
    .map(([value, digits]) => (value * (1 + 2 ** -25)).toPrecision(digits));
  fc.assert(
    fc.property(fc.array(middles, { maxLength: 20 }), (texts) => {
      const data = read(`[${texts.join(",")}]`, "FP32", texts.length, 4);
      const expected = Float32Array.from(texts.map((text) => Math.fround(Number(text))));
      assert.deepEqual(new Float32Array(data.slice().buffer), expected);
    }),
    { numRuns: 1000 },
  );
});

test("an array of numbers with a byte replaced is read as JSON.parse reads it, or refused as it refuses it", () => {
  const numbers = fc.array(
    fc.tuple(fc.oneof(spelled, fc.integer().map(String)), fc.constantFrom(",", ", ", " ,", ",\n", ",  ")),
    { minLength: 1, maxLength: 8 },
  );
  const replaced = fc.tuple(
    numbers,
    fc.nat(),
    fc.option(fc.constantFrom(...Array.from("0123456789-+.eE,[] x")), { nil: null }),
  );
  fc.assert(
    fc.property(replaced, ([parts, at, other]) => {
      const bytes = Buffer.from(`[${parts.map(([text, comma]) => text + comma).join("")}0]`);
      if (other !== null) bytes[1 + (at % (bytes.length - 2))] = other.charCodeAt(0);
      const text = bytes.toString();
      let standard: number[] | null = null;
      try {
        standard = (JSON.parse(text) as unknown[]).flat(Infinity) as number[];
      } catch {
        // `standard` stays null; the reader must reject the text, too.
      }
      if (standard?.some((value) => !Number.isFinite(value)) === true) return;
      if (standard === null) {
        assert.throws(() => {
          const scanner = new JsonScanner(bytes);
          scanner.skipValue();
          scanner.finish();
        }, JsonSyntaxError);
      } else {
        const expected = Float32Array.from(standard);
        assert.deepEqual(new Float32Array(read(text, "FP32", standard.length, 4).slice().buffer), expected, text);
      }
    }),
    { numRuns: 3000 },
  );
});

test("64-bit integers are exact both ways", () => {
  for (const [datatype, array, Typed] of [
    ["INT64", fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), BigInt64Array],
    ["UINT64", fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), BigUint64Array],
  ] as const) {
    fc.assert(
      fc.property(fc.array(fc.oneof(array, fc.bigInt({ min: 0n, max: 9n })), { maxLength: 20 }), (values) => {
        const text = `[${values.join(",")}]`;
        const data = read(text, datatype, values.length, 8);
        assert.deepEqual([...new Typed(data.slice().buffer)], values);
        assert.equal(print(datatype, data), text);
      }),
    );
  }
});

test("strings keep their UTF-8, escaped or not", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "binary" }), { maxLength: 10 }), fc.boolean(), (values, escape) => {
      let text = JSON.stringify(values);
      if (escape)
        text = text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
      const data = read(text, "BYTES", values.length, 0);
      assert.deepEqual(JSON.parse(print("BYTES", data)), values);
    }),
  );
});

test("nesting is ignored, and the number of elements is checked", () => {
  assert.deepEqual([...read("[[1,[2]],[],[[[3]]]]", "UINT8", 3, 1)], [1, 2, 3]);
  const mismatch = { message: "Shape does not match true shape of 'data' field", code: "INTERNAL" };
  assert.throws(() => read("[1,2,3]", "UINT8", 2, 1), mismatch);
  assert.throws(() => read("[1]", "UINT8", 2, 1), mismatch);
});

test("an integer outside of its datatype's range is rejected", () => {
  for (const [datatype, text, bytes] of [
    ["INT8", "[300]", 1],
    ["UINT16", "[70000]", 2],
    ["INT32", "[9007199254740993]", 4],
  ] as const)
    assert.throws(() => read(text, datatype, 1, bytes), { code: "INVALID_ARG", message: /out of range for datatype/ });
});

test("any text is accepted or refused as JSON.parse does, apart from what Triton adds", () => {
  const alphabet = fc.constantFrom(...Array.from('{}[]",:-+.0123456789eEtrufalsn\\ \n/'));
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.array(alphabet, { maxLength: 12 }).map((segments) => segments.join("")),
      ),
      (text) => {
        const standard = accepts(() => JSON.parse(text) as unknown);
        const ours = accepts(() => {
          const scanner = new JsonScanner(Buffer.from(text));
          scanner.skipValue();
          scanner.finish();
        });
        // JSON.parse converts 1e999 to Infinity; Triton rejects it.
        if (!/\d[eE]\+?\d{3}/.test(text)) assert.equal(ours, standard, JSON.stringify(text));
      },
    ),
    { numRuns: 2000 },
  );
});

function accepts(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch (error) {
    assert.ok(error instanceof SyntaxError || error instanceof JsonSyntaxError);
    return false;
  }
}

test("a text larger than the sink's buffer is printed in chunks that join to the same text", () => {
  const values = Float64Array.from({ length: 30_000 }, (_, index) => index / 7);
  const text = print("FP64", new Uint8Array(values.buffer));
  assert.deepEqual(Float64Array.from(JSON.parse(text) as number[]), values);
});

test("each chunk of a long text has its own buffer, outside of Node's pool", () => {
  const sink = new JsonSink();
  sink.string("short");
  sink.stringBytes(Buffer.alloc(200_000, "x"));
  const chunks = sink.take() as readonly Buffer[];
  const buffers = new Set(chunks.map(({ buffer }) => buffer));
  assert.ok(chunks.length > 2);
  assert.equal(buffers.size, chunks.length);
  assert.ok(!buffers.has(Buffer.from("short").buffer));
});
