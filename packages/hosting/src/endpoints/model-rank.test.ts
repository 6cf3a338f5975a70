import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ModelRank, derivePlacementKey } from "./model-rank.ts";

const mask = 0xffffffffn;
const rotated = (word: bigint, bits: bigint) => ((word << bits) | (word >> (32n - bits))) & mask;

/** Computes HalfSipHash-2-4 with 64 bits as its paper defines it, over bytes and with bigints. */
function halfSipHash(key: Buffer, bytes: Buffer): bigint {
  const [k0, k1] = [BigInt(key.readUInt32LE(0)), BigInt(key.readUInt32LE(4))];
  let [v0, v1, v2, v3] = [k0, k1 ^ 0xeen, 0x6c796765n ^ k0, 0x74656462n ^ k1];
  const rounds = (count: number) => {
    for (let round = 0; round < count; round += 1) {
      v0 = (v0 + v1) & mask;
      v1 = rotated(v1, 5n) ^ v0;
      v0 = rotated(v0, 16n);
      v2 = (v2 + v3) & mask;
      v3 = rotated(v3, 8n) ^ v2;
      v0 = (v0 + v3) & mask;
      v3 = rotated(v3, 7n) ^ v0;
      v2 = (v2 + v1) & mask;
      v1 = rotated(v1, 13n) ^ v2;
      v2 = rotated(v2, 16n);
    }
  };
  const last = Buffer.alloc(bytes.length - (bytes.length % 4) + 4);
  bytes.copy(last);
  last[last.length - 1] = bytes.length & 0xff;
  for (let at = 0; at < last.length; at += 4) {
    const word = BigInt(last.readUInt32LE(at));
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
  v2 ^= 0xeen;
  rounds(4);
  const low = v1 ^ v3;
  v1 ^= 0xddn;
  rounds(4);
  return ((v1 ^ v3) << 32n) | low;
}

test("the hash function of this test gives HalfSipHash's published test vectors", () => {
  const key = Buffer.from("0001020304050607", "hex");
  const responses = [
    "218d1f59b9b83cc8",
    "be552412f8387315",
    "064f39ef7c50eb57",
    "ce0f1a45f7060679",
    "d5e78a175be52ea1",
  ];
  for (const [length, response] of responses.entries()) {
    const bytes = Buffer.from(Array.from({ length }, (_, index) => index));
    const hash = Buffer.alloc(8);
    hash.writeBigUInt64LE(halfSipHash(key, bytes));
    assert.equal(hash.toString("hex"), response);
  }
});

test("property: an ordinal's score is the HalfSipHash of the padded name, its length and the ordinal", () => {
  const name = fc.string({ unit: "binary", maxLength: 300 });
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 8, maxLength: 8 }), name, fc.nat(2 ** 30), (keyBytes, target, ordinal) => {
      const key = Buffer.from(keyBytes);
      const units = Buffer.from(target, "utf16le");
      const bytes = Buffer.alloc(Math.ceil(units.length / 4) * 4 + 8);
      units.copy(bytes);
      bytes.writeUInt32LE(target.length, bytes.length - 8);
      bytes.writeUInt32LE(ordinal, bytes.length - 4);
      const rank = new ModelRank(key.toString("hex"), target);
      for (let again = 0; again < 2; again += 1) {
        assert.equal(rank.scoreOf(ordinal), Number(halfSipHash(key, bytes) >> 11n));
      }
    }),
  );
});

test("names that all prefer one instance of an endpoint are spread evenly over the instances of another endpoint", () => {
  const best = (key: string, target: string) => {
    const rank = new ModelRank(key, target);
    return [0, 1, 2, 3].toSorted((a, b) => rank.scoreOf(b) - rank.scoreOf(a))[0];
  };
  const [known, other] = [derivePlacementKey("one"), derivePlacementKey("another")];
  const aimed = Array.from({ length: 8000 }, (_, index) => `m${index}`).filter((target) => best(known, target) === 0);
  const counts = [0, 0, 0, 0];
  for (const target of aimed) counts[best(other, target) ?? 0] = (counts[best(other, target) ?? 0] ?? 0) + 1;
  for (const count of counts) assert.ok(Math.abs(count - aimed.length / 4) < 100, counts.join(" "));
});
