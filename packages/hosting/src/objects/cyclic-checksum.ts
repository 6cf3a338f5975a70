/** Reflected polynomials of S3's CRCs. Each CRC starts with all bits set and is inverted at the end. */
const polynomials = {
  crc32: { bits: 32n, polynomial: 0xedb88320n },
  crc32c: { bits: 32n, polynomial: 0x82f63b78n },
  crc64nvme: { bits: 64n, polynomial: 0x9a6c9329ac4bc9b5n },
} as const;

export type CyclicAlgorithm = keyof typeof polynomials;

export const isCyclicAlgorithm = (algorithm: string): algorithm is CyclicAlgorithm => algorithm in polynomials;

export interface ChecksummedRange {
  readonly byteLength: number;
  /** Base64, as in S3. */
  readonly checksum: string;
}

/**
 * Returns the CRC of concatenated ranges, computed from the CRC of each range without its bytes. Appending zero bytes
 * multiplies a CRC by a power of x modulo the polynomial; the next range's CRC is then added. The power is cached by
 * length, because most ranges have equal length.
 */
export function combineChecksums(algorithm: CyclicAlgorithm, stretches: readonly ChecksummedRange[]): string {
  const { bits } = polynomials[algorithm];
  const powers = new Map<number, bigint>();
  let joined = 0n;
  for (const { byteLength, checksum } of stretches) {
    const power = powers.get(byteLength) ?? zerosFactor(algorithm, byteLength);
    powers.set(byteLength, power);
    joined = product(algorithm, power, joined) ^ BigInt(`0x0${Buffer.from(checksum, "base64").toString("hex")}`);
  }
  return Buffer.from(joined.toString(16).padStart(Number(bits / 4n), "0"), "hex").toString("base64");
}

/** Returns x to the power of `8 * byteLength`, modulo the polynomial. */
function zerosFactor(algorithm: CyclicAlgorithm, byteLength: number): bigint {
  const { bits } = polynomials[algorithm];
  // In reflected form, the highest bit is x to the power of 0.
  let factor = 1n << (bits - 1n);
  let square = 1n << (bits - 2n);
  for (let exponent = BigInt(byteLength) * 8n; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) factor = product(algorithm, factor, square);
    square = product(algorithm, square, square);
  }
  return factor;
}

function product(algorithm: CyclicAlgorithm, a: bigint, b: bigint): bigint {
  const { bits, polynomial } = polynomials[algorithm];
  let sum = 0n;
  let shifted = b;
  for (let bit = 1n << (bits - 1n); bit > 0n; bit >>= 1n) {
    if (a & bit) sum ^= shifted;
    shifted = shifted & 1n ? (shifted >> 1n) ^ polynomial : shifted >> 1n;
  }
  return sum;
}
