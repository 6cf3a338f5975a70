import { createHash, type Hash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { ChecksumAlgorithm } from "./object-store.ts";

export type DigestName = ChecksumAlgorithm | "md5";

interface Running {
  update(data: Uint8Array): void;
  digest(): Buffer;
}

const makers: Readonly<Record<DigestName, () => Running>> = {
  md5: () => hashing(createHash("md5")),
  sha1: () => hashing(createHash("sha1")),
  sha256: () => hashing(createHash("sha256")),
  crc32: () => cyclic((value, data) => crc32(data, value)),
  crc32c: () => cyclic((value, data) => crc32c(value, data)),
  crc64nvme: () => new Crc64Nvme(),
};

function hashing(hash: Hash): Running {
  return { update: (data) => void hash.update(data), digest: () => hash.digest() };
}

function cyclic(step: (value: number, data: Uint8Array) => number): Running {
  let value = 0;
  return {
    update(data) {
      value = step(value, data);
    },
    digest() {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(value >>> 0);
      return bytes;
    },
  };
}

/** Converts a base64 CRC-32 to a number. */
export const decodeCrc32 = (checksum: string): number => Buffer.from(checksum, "base64").readUInt32BE(0);

/** Computes several digests of one body in one pass. */
export class BodyDigest {
  readonly #running: readonly (readonly [DigestName, Running])[];

  constructor(names: readonly DigestName[]) {
    this.#running = [...new Set(names)].map((name) => [name, makers[name]()] as const);
  }

  update(data: Uint8Array): void {
    for (const [, running] of this.#running) running.update(data);
  }

  /** Returns the digests in base64, as in S3's headers. */
  digest(): Partial<Record<DigestName, string>> {
    return Object.fromEntries(this.#running.map(([name, running]) => [name, running.digest().toString("base64")]));
  }
}

export function computeDigest(name: DigestName, data: Uint8Array): string {
  const digest = new BodyDigest([name]);
  digest.update(data);
  return digest.digest()[name] ?? "";
}

/**
 * Tables for slicing-by-8: table k has the CRC of a byte followed by k zero bytes. Eight bytes then need eight
 * independent lookups instead of eight dependent shifts.
 */
const crc32cTables = ((): readonly Uint32Array[] => {
  const tables = Array.from({ length: 8 }, () => new Uint32Array(256));
  const [first = new Uint32Array(256)] = tables;
  for (let byte = 0; byte < 256; byte += 1) {
    let value = byte;
    for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
    first[byte] = value;
  }
  for (let k = 1; k < 8; k += 1) {
    for (let byte = 0; byte < 256; byte += 1) {
      const before = tables[k - 1]?.[byte] ?? 0;
      (tables[k] ?? first)[byte] = (before >>> 8) ^ (first[before & 0xff] ?? 0);
    }
  }
  return tables;
})();

function crc32c(before: number, data: Uint8Array): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = crc32cTables as unknown as Uint32Array[] as [
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
  ];
  let value = ~before;
  let at = 0;
  const end = data.length - 7;
  for (; at < end; at += 8) {
    const low = value ^ (data[at]! | (data[at + 1]! << 8) | (data[at + 2]! << 16) | (data[at + 3]! << 24));
    value =
      t7[low & 0xff]! ^
      t6[(low >>> 8) & 0xff]! ^
      t5[(low >>> 16) & 0xff]! ^
      t4[low >>> 24]! ^
      t3[data[at + 4]!]! ^
      t2[data[at + 5]!]! ^
      t1[data[at + 6]!]! ^
      t0[data[at + 7]!]!;
  }
  for (; at < data.length; at += 1) value = (value >>> 8) ^ t0[(value ^ data[at]!) & 0xff]!;
  return ~value >>> 0;
}

/** Tables of 64-bit values, each as two 32-bit halves. BigInt arithmetic would be fifty times slower per byte. */
const crc64Tables = ((): { readonly low: readonly Uint32Array[]; readonly high: readonly Uint32Array[] } => {
  const polynomial = 0x9a6c9329ac4bc9b5n;
  const low = Array.from({ length: 8 }, () => new Uint32Array(256));
  const high = Array.from({ length: 8 }, () => new Uint32Array(256));
  const first: bigint[] = [];
  for (let byte = 0; byte < 256; byte += 1) {
    let value = BigInt(byte);
    for (let bit = 0; bit < 8; bit += 1) value = value & 1n ? (value >> 1n) ^ polynomial : value >> 1n;
    first.push(value);
  }
  let previous = first;
  for (let k = 0; k < 8; k += 1) {
    const values = k === 0 ? first : previous.map((value) => (value >> 8n) ^ first[Number(value & 0xffn)]!);
    values.forEach((value, byte) => {
      low[k]![byte] = Number(value & 0xffffffffn);
      high[k]![byte] = Number(value >> 32n);
    });
    previous = values;
  }
  return { low, high };
})();

class Crc64Nvme implements Running {
  #low = -1;
  #high = -1;

  update(data: Uint8Array): void {
    const { low: l, high: h } = crc64Tables;
    const [l0, l1, l2, l3, l4, l5, l6, l7] = l as [
      Uint32Array,
      Uint32Array,
      Uint32Array,
      Uint32Array,
      Uint32Array,
      Uint32Array,
      Uint32Array,
      Uint32Array,
    ];
    const [h0, h1, h2, h3, h4, h5, h6, h7] = h as [
      Uint32Array,
      Uint32Array,
      Uint32Array,
      Uint32Array,
      Uint32Array,
      Uint32Array,
      Uint32Array,
      Uint32Array,
    ];
    let low = this.#low;
    let high = this.#high;
    let at = 0;
    const end = data.length - 7;
    for (; at < end; at += 8) {
      const a = low ^ (data[at]! | (data[at + 1]! << 8) | (data[at + 2]! << 16) | (data[at + 3]! << 24));
      const b = high ^ (data[at + 4]! | (data[at + 5]! << 8) | (data[at + 6]! << 16) | (data[at + 7]! << 24));
      const [a0, a1, a2, a3] = [a & 0xff, (a >>> 8) & 0xff, (a >>> 16) & 0xff, a >>> 24];
      const [b0, b1, b2, b3] = [b & 0xff, (b >>> 8) & 0xff, (b >>> 16) & 0xff, b >>> 24];
      low = l7[a0]! ^ l6[a1]! ^ l5[a2]! ^ l4[a3]! ^ l3[b0]! ^ l2[b1]! ^ l1[b2]! ^ l0[b3]!;
      high = h7[a0]! ^ h6[a1]! ^ h5[a2]! ^ h4[a3]! ^ h3[b0]! ^ h2[b1]! ^ h1[b2]! ^ h0[b3]!;
    }
    for (; at < data.length; at += 1) {
      const index = (low ^ data[at]!) & 0xff;
      low = ((low >>> 8) | (high << 24)) ^ l0[index]!;
      high = (high >>> 8) ^ h0[index]!;
    }
    this.#low = low;
    this.#high = high;
  }

  digest(): Buffer {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32BE(~this.#high >>> 0, 0);
    bytes.writeUInt32BE(~this.#low >>> 0, 4);
    return bytes;
  }
}
