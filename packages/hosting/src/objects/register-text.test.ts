import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { checksummedLine } from "@galatea/base";
import type { ObjectEntry } from "./object-entry.ts";
import { parseRegisterLine, registerLine } from "./register-text.ts";

const text = fc.string({ unit: "grapheme", maxLength: 40 });
const texts = fc.dictionary(text, text, { maxKeys: 4, noNullPrototype: true });
const count = fc.maxSafeNat();

const entries: fc.Arbitrary<ObjectEntry> = fc.record(
  {
    head: fc.record(
      {
        bucket: text,
        key: text,
        byteLength: count,
        etag: text,
        lastModifiedMs: fc.double({ noNaN: true, noDefaultInfinity: true }).map((ms) => (ms === 0 ? 0 : ms)),
        contentType: text,
        headers: texts,
        checksums: texts,
        checksumType: fc.constantFrom("COMPOSITE" as const, "FULL_OBJECT" as const),
      },
      {
        noNullPrototype: true,
        requiredKeys: ["bucket", "key", "byteLength", "etag", "lastModifiedMs", "contentType", "headers", "checksums"],
      },
    ),
    version: count,
    data: fc.option(text),
    offset: count,
    crc32: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    uploadId: fc.option(text),
  },
  { noNullPrototype: true },
);

test("any entry is read as it was written, on one line", () => {
  fc.assert(
    fc.property(entries, (entry) => {
      const line = Buffer.from(registerLine(entry));
      assert.equal(line.indexOf("\n"), line.length - 1);
      assert.deepEqual(parseRegisterLine(line.subarray(0, -1)), entry);
    }),
  );
});

test("a line with a flipped bit, or cut short, says nothing", () => {
  fc.assert(
    fc.property(entries, fc.nat(), fc.boolean(), (entry, chosen, isCut) => {
      const line = Buffer.from(registerLine(entry)).subarray(0, -1);
      const bit = chosen % (line.length * 8);
      if (isCut) return assert.equal(parseRegisterLine(line.subarray(0, chosen % line.length)), null);
      line[bit >>> 3]! ^= 1 << (bit & 7);
      return assert.equal(parseRegisterLine(line), null);
    }),
  );
});

test("a sealed line of any other shape says nothing", () => {
  const head = {
    bucket: "b",
    key: "k",
    byteLength: 1,
    etag: "e",
    lastModifiedMs: 1,
    contentType: "t",
    headers: {},
    checksums: {},
  };
  const stored = { head, data: null, crc32: 1, uploadId: null };
  const sealed = (content: unknown) => Buffer.from(checksummedLine(JSON.stringify(content)));
  assert.notEqual(parseRegisterLine(sealed([1, 0, stored])), null);
  const others = [
    null,
    {},
    [],
    "x",
    [1, 0],
    [1, 0, null],
    [1, 0, {}],
    [1, 0, stored, 1],
    ...[-1, 1.5, "1", null, 2 ** 60].flatMap((bad) => [
      [bad, 0, stored],
      [1, bad, stored],
    ]),
    ...[{ data: 1 }, { crc32: -1 }, { crc32: 2 ** 32 }, { crc32: "1" }, { uploadId: {} }, { head: null }].map((bad) => [
      1,
      0,
      { ...stored, ...bad },
    ]),
    ...[
      { bucket: null },
      { key: 1 },
      { byteLength: -1 },
      { byteLength: "1" },
      { etag: undefined },
      { lastModifiedMs: null },
      { contentType: [] },
      { headers: null },
      { headers: { a: 1 } },
      { checksums: [] },
      { checksumType: "OTHER" },
    ].map((bad) => [1, 0, { ...stored, head: { ...head, ...bad } }]),
  ];
  for (const other of others) assert.equal(parseRegisterLine(sealed(other)), null, JSON.stringify(other));
  fc.assert(fc.property(fc.jsonValue(), (value) => assert.equal(parseRegisterLine(sealed(value)), null)));
  fc.assert(fc.property(fc.uint8Array(), (bytes) => assert.equal(parseRegisterLine(Buffer.from(bytes)), null)));
});
