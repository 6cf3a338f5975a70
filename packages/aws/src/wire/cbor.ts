/**
 * Encodes the document of an error as CBOR (RFC 8949). Supports texts, numbers, booleans, null, lists, and maps with
 * texts as keys. There is no decoder: requests in CBOR are not supported.
 */
export function encodeCbor(value: unknown): Buffer {
  if (value === null || value === undefined) return Buffer.from([0xf6]);
  if (typeof value === "boolean") return Buffer.from([value ? 0xf5 : 0xf4]);
  if (typeof value === "number") return encodeNumber(value);
  if (typeof value === "string") {
    const bytes = Buffer.from(value);
    return Buffer.concat([head(3, bytes.byteLength), bytes]);
  }
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(encodeCbor)]);
  const entries = Object.entries(value);
  const encoded = entries.flatMap(([key, item]) => [encodeCbor(key), encodeCbor(item)]);
  return Buffer.concat([head(5, entries.length), ...encoded]);
}

function encodeNumber(value: number): Buffer {
  if (Number.isInteger(value) && Math.abs(value) < 2 ** 32) return value < 0 ? head(1, -1 - value) : head(0, value);
  const bytes = Buffer.alloc(9);
  bytes[0] = 0xfb;
  bytes.writeDoubleBE(value, 1);
  return bytes;
}

/** Encodes a major type with its argument, which must be below 2^32. */
function head(major: number, argument: number): Buffer {
  if (argument < 24) return Buffer.from([(major << 5) | argument]);
  const [code, byteLength] = argument < 2 ** 8 ? [24, 1] : argument < 2 ** 16 ? [25, 2] : [26, 4];
  const bytes = Buffer.alloc(1 + byteLength);
  bytes[0] = (major << 5) | code;
  bytes.writeUIntBE(argument, 1, byteLength);
  return bytes;
}
