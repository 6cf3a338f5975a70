import assert from "node:assert/strict";
import { test } from "node:test";
import { array, assert as hold, constant, integer, nat, oneof, property, string, uint8Array } from "fast-check";
import { PayloadPacker } from "./payload-packer.ts";
import { openSplitter, type RecordFormat } from "./record-splitter.ts";
import { maskedCrc32c } from "./tfrecord-splitter.ts";

const magic = Buffer.from([0x0a, 0x23, 0xd7, 0xce]);

/** Encodes a record as MXNet does: the record is split wherever it contains the magic number at a multiple of four. */
function recordIo(content: Buffer): Buffer {
  const chunks: Buffer[] = [];
  let from = 0;
  for (let at = 0; at + 4 <= content.length; at += 4) {
    if (!content.subarray(at, at + 4).equals(magic)) continue;
    chunks.push(content.subarray(from, at));
    from = at + 4;
  }
  chunks.push(content.subarray(from));
  const kind = (index: number) => {
    if (chunks.length === 1) return 0;
    if (index === 0) return 1;
    return index === chunks.length - 1 ? 3 : 2;
  };
  return Buffer.concat(
    chunks.map((chunk, index) => {
      const header = Buffer.alloc(8);
      magic.copy(header);
      header.writeUInt32LE(((kind(index) << 29) | chunk.length) >>> 0, 4);
      return Buffer.concat([header, chunk, Buffer.alloc((4 - (chunk.length % 4)) % 4)]);
    }),
  );
}

function tfRecord(content: Buffer): Buffer {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(content.length));
  const sum = (data: Buffer) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(maskedCrc32c(data));
    return bytes;
  };
  return Buffer.concat([length, sum(length), content, sum(content)]);
}

const line = (content: Buffer) => Buffer.concat([content, Buffer.from("\n")]);
const framings = { Line: line, RecordIO: recordIo, TFRecord: tfRecord } as const;

function split(format: RecordFormat, chunks: readonly Buffer[], bytesMax = 10_000) {
  const splitter = openSplitter(format, bytesMax);
  return [...chunks.flatMap((chunk) => splitter.push(chunk)), ...splitter.end()];
}

function cut(complete: Buffer, positions: readonly number[]): Buffer[] {
  const at = [
    0,
    ...positions.map((position) => position % (complete.length + 1)).toSorted((a, b) => a - b),
    complete.length,
  ];
  return at.slice(1).map((end, index) => complete.subarray(at[index], end));
}

const bytes = uint8Array({ maxLength: 60 }).map((each) => Buffer.from(each));
const withMagic = array(oneof(bytes, constant(magic)), { maxLength: 6 }).map((chunks) => Buffer.concat(chunks));
const text = string({ minLength: 1, maxLength: 30 }).map((each) => Buffer.from(each.replaceAll(/[\r\n]/g, "x")));

for (const format of ["Line", "RecordIO", "TFRecord"] as const) {
  test(`${format}: the same records are found however the object is chunked`, () => {
    const records = array(format === "Line" ? text : withMagic, { maxLength: 12 });
    hold(
      property(records, array(nat(), { maxLength: 8 }), (contents, positions) => {
        const framed = contents.map(framings[format]);
        const found = split(format, cut(Buffer.concat(framed), positions));
        assert.deepEqual(
          found.map((each) => each.content.toString("hex")),
          contents.map((each) => each.toString("hex")),
        );
        assert(Buffer.concat(found.map((each) => each.framed)).equals(Buffer.concat(framed)));
      }),
    );
  });

  test(`${format}: invalid bytes are rejected with a TransformError, or are lines`, () => {
    hold(
      property(bytes, (noise) => {
        try {
          split(format, [noise]);
        } catch (error) {
          assert.equal((error as Error).name, "TransformError", String(error));
          assert.match((error as Error).message, /^record \d+ /);
        }
      }),
    );
  });

  test(`${format}: a record longer than a payload is rejected before all of it has arrived`, () => {
    const complete = framings[format](Buffer.alloc(200, "a"));
    assert.throws(
      () => openSplitter(format, 100).push(complete.subarray(0, 190)),
      /longer than the 100 bytes of a payload/,
    );
  });
}

test("a TFRecord with a wrong checksum is rejected", () => {
  // The CRC-32C of these digits is e3069283, which TensorFlow's mask turns into this value.
  assert.equal(maskedCrc32c(Buffer.from("123456789")), 0xc78ab0e5);
  const damaged = tfRecord(Buffer.from("abc"));
  damaged[13] = 0;
  assert.throws(() => split("TFRecord", [damaged]), /record 1 has a wrong checksum/);
});

test("property: records are packed in order into payloads that are as long as possible within the limit", () => {
  const sizes = array(integer({ min: 1, max: 100 }), { maxLength: 40 });
  hold(
    property(sizes, (lengths) => {
      const packer = new PayloadPacker("MultiRecord", 100);
      const records = lengths.map((length, index) => Buffer.alloc(length, String(index % 10)));
      const payloads = [
        ...records.map((each) => packer.push({ alone: each, together: each, original: each })),
        packer.end(),
      ].filter((payload) => payload !== null);
      assert(Buffer.concat(payloads.map(({ body }) => body)).equals(Buffer.concat(records)));
      const originals = payloads.flatMap(({ originals: joined }) => joined?.toString().split("\n").slice(0, -1) ?? []);
      assert.deepEqual(originals, records.map(String));
      let at = 0;
      for (const { body, recordCount } of payloads) {
        assert(body.length <= 100);
        at += recordCount;
        const next = records[at];
        // Each original record has a line feed, and together they must not exceed a payload either.
        assert(next === undefined || body.length + recordCount + next.length > 100);
      }
    }),
  );
});

test("a payload with a join ends when the records' original bytes reach the limit, even if it is short", () => {
  const packer = new PayloadPacker("MultiRecord", 100);
  const original = Buffer.alloc(60, "o");
  const payloads = Array.from({ length: 5 }, () =>
    packer.push({ alone: original, together: Buffer.from("x\n"), original }),
  );
  assert.deepEqual(
    payloads.map((payload) => payload?.originals?.length),
    [undefined, 61, 61, 61, 61],
  );
});
