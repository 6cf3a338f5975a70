import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { printJsonData, readJsonData } from "./json-data-fixture.ts";
import { JsonDataReader } from "./json-data.ts";
import { JsonDataPrinter } from "./json-print.ts";
import { JsonScanner } from "./json-scanner.ts";
import { JsonSink } from "./json-sink.ts";
import { JsonWalk } from "./json-walk.ts";

/** Returns the result of `step`, which is the end of a value, or the text of the error that it throws. */
function endOf(step: () => number): number | string {
  try {
    return step();
  } catch (error) {
    return String(error);
  }
}

function skipped(bytes: Buffer): number {
  const scanner = new JsonScanner(bytes);
  scanner.skipValue();
  return scanner.at;
}

function walked(bytes: Buffer, chunkBytes: number): number {
  const scanner = new JsonScanner(bytes);
  const walk = new JsonWalk(scanner);
  while (!walk.advance(chunkBytes));
  scanner.skipValue();
  return scanner.at;
}

/** JSON texts, and the texts with one byte replaced, most of which are invalid. */
const texts = fc
  .tuple(
    fc.json({ maxDepth: 5 }),
    fc.nat(),
    fc.option(fc.constantFrom(...Array.from('[]{}",:1e-\\ \0')), { nil: null }),
  )
  .map(([text, at, other]) => {
    const bytes = Buffer.from(text);
    if (other !== null) bytes[at % bytes.length] = other.charCodeAt(0);
    return bytes;
  });

test("a value that is validated in chunks of any size ends at the same position, or fails with the same error, as at once", () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 40 }), (bytes, chunkBytes) => {
      assert.equal(
        endOf(() => walked(bytes, chunkBytes)),
        endOf(() => skipped(bytes)),
      );
    }),
  );
});

test("long arrays and objects that were validated are skipped without reading them again", () => {
  const bytes = Buffer.from(`{"a": [${"1,".repeat(20_000)}2], "b": {"c": [${"3,".repeat(20_000)}4]}}`);
  const scanner = new JsonScanner(bytes);
  const walk = new JsonWalk(scanner);
  let chunkCount = 1;
  while (!walk.advance(10_000)) chunkCount++;
  assert.equal(chunkCount, 9);
  assert.equal(scanner.at, 0);
  bytes.fill("!", 1, bytes.length - 1);
  scanner.skipValue();
  assert.equal(scanner.at, bytes.length);
});

test("nesting over the limit is rejected in chunks as well", () => {
  const bytes = Buffer.from(`${"[".repeat(103)}${"]".repeat(103)}`);
  assert.match(String(endOf(() => walked(bytes, 7))), /nesting depth exceeds/);
});

const nested = fc.letrec<{ value: unknown; array: unknown[] }>((tie) => ({
  value: fc.oneof(fc.integer({ min: -999, max: 999 }), tie("array")),
  array: fc.array(tie("value"), { maxLength: 6 }),
})).array;

test("data that is read and printed in chunks equals data that is read and printed at once", () => {
  fc.assert(
    fc.property(nested, fc.integer({ min: 1, max: 20 }), (value, chunkBytes) => {
      const bytes = Buffer.from(JSON.stringify(value));
      const count = value.flat(Infinity).length;
      const target = (into: Uint8Array) => ({ datatype: "FP32", count, into }) as const;
      const complete = new Uint8Array(4 * count);
      readJsonData(new JsonScanner(bytes), target(complete));
      const pieced = new Uint8Array(4 * count);
      const reading = new JsonDataReader(new JsonScanner(bytes), target(pieced));
      while (!reading.advance(chunkBytes));
      assert.deepEqual([reading.byteLength, pieced], [4 * count, complete]);

      const sinks = [new JsonSink(), new JsonSink()] as const;
      printJsonData(sinks[0], "FP32", complete);
      const printing = new JsonDataPrinter(sinks[1], { datatype: "FP32", data: complete });
      while (!printing.advance(chunkBytes));
      assert.equal(sinks[1].take(), sinks[0].take());
    }),
  );
});

test("strings are printed in chunks that may end at any byte", () => {
  const strings = fc.array(fc.uint8Array({ maxLength: 12 }), { maxLength: 6 });
  fc.assert(
    fc.property(strings, fc.integer({ min: 1, max: 20 }), (elements, chunkBytes) => {
      const data = Buffer.concat(elements.flatMap((element) => [Buffer.of(element.length, 0, 0, 0), element]));
      const sinks = [new JsonSink(), new JsonSink()] as const;
      printJsonData(sinks[0], "BYTES", data);
      const printing = new JsonDataPrinter(sinks[1], { datatype: "BYTES", data });
      let chunkCount = 1;
      for (; !printing.advance(chunkBytes); chunkCount++) assert.ok(chunkCount < 1000);
      assert.equal(sinks[1].take(), sinks[0].take());
      // A chunk may exceed its size by the four bytes of a length field.
      assert.ok(chunkCount >= Math.floor(data.length / (chunkBytes + 4)), `${chunkCount} pieces`);
    }),
  );
});

test("a tensor without brackets is one value if it has one element", () => {
  const sink = new JsonSink();
  const data = Buffer.from("\x03\0\0\0abc", "latin1");
  const printing = new JsonDataPrinter(sink, { datatype: "BYTES", data }, "");
  while (!printing.advance(2));
  assert.equal(sink.take(), '"abc"');
});
