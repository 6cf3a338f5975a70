import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { checksummedLine, parseChecksummedLine } from "./checksummed-line.ts";

const lines = fc.string({ unit: "binary" }).map((text) => text.replaceAll("\n", ""));

test("a line with its checksum parses to its text", () => {
  fc.assert(
    fc.property(lines, (text) => {
      assert.deepEqual(parseChecksummedLine(Buffer.from(checksummedLine(text))), {
        text: Buffer.from(text).toString(),
        isRepaired: false,
      });
    }),
  );
});

test("a single flipped bit of a line or of its checksum is corrected and reported", () => {
  fc.assert(
    fc.property(lines, fc.nat(), (text, chosen) => {
      const line = Buffer.from(checksummedLine(text));
      const bit = chosen % (line.length * 8);
      line[bit >>> 3]! ^= 1 << (bit & 7);
      assert.deepEqual(parseChecksummedLine(line), { text: Buffer.from(text).toString(), isRepaired: true });
    }),
    { numRuns: 500 },
  );
});

test("a line that is truncated, lacks a checksum or has several changed bytes is rejected", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 8 }), fc.nat(), fc.integer({ min: 1, max: 7 }), (text, chosen, count) => {
      const line = Buffer.from(checksummedLine(text.replaceAll("\n", " ")));
      const damaged = Buffer.from(line);
      for (let index = 0; index <= count; index += 1) damaged[(chosen + index) % line.length]! ^= 0x55;
      assert.equal(parseChecksummedLine(damaged), null);
      assert.equal(parseChecksummedLine(line.subarray(0, line.length - 1 - (chosen % 3))), null);
    }),
  );
  assert.equal(parseChecksummedLine(Buffer.from('{"head":1}')), null);
  assert.equal(parseChecksummedLine(Buffer.alloc(0)), null);
});
