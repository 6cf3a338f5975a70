import { crc32 } from "node:zlib";
import type { StoredPoint } from "@galatea/base/metrics";

/** The properties that all points of a block share. */
export interface MetricBlockPeriod {
  readonly periodMs: number;
  /** Epoch time at or before the start of every point. */
  readonly startMs: number;
}

/** Format version, the first byte of a block. Other versions are from other releases. */
const version = 2;
/** The previous format version, which has no checksum. */
const versionBefore = 1;
/** Bytes of the header: the version, and a CRC-32 of the block's period and all following bytes. */
const headerBytes = 5;
/**
 * Bytes of a point: series number (6), index of the period (2), four float64 (32), flags (1), length of the histogram
 * (2).
 */
const pointBytes = 43;
const knowsValues = 1;

/** Encodes points of many series in one time range. Numbers are little-endian. */
export function encodeBlock(location: MetricBlockPeriod, points: readonly StoredPoint[]): Uint8Array {
  const histogramBytes = points.reduce((sum, { histogram }) => sum + (histogram?.byteLength ?? 0), 0);
  // Not from Node's pool: the complete pool would be sent to the writer thread.
  const bytes = Buffer.from(new ArrayBuffer(headerBytes + points.length * pointBytes + histogramBytes));
  bytes.writeUInt8(version, 0);
  let at = headerBytes;
  for (const point of points) {
    at = bytes.writeUIntLE(point.seriesNumber, at, 6);
    at = bytes.writeUInt16LE((point.startMs - location.startMs) / location.periodMs, at);
    at = bytes.writeDoubleLE(point.sampleCount, at);
    at = bytes.writeDoubleLE(point.sum, at);
    at = bytes.writeDoubleLE(point.minimum, at);
    at = bytes.writeDoubleLE(point.maximum, at);
    at = bytes.writeUInt8(point.histogram === null ? 0 : knowsValues, at);
    at = bytes.writeUInt16LE(point.histogram?.byteLength ?? 0, at);
    if (point.histogram === null) continue;
    bytes.set(point.histogram, at);
    at += point.histogram.byteLength;
  }
  bytes.writeUInt32LE(checksumOf(location, bytes), 1);
  return bytes;
}

function checksumOf({ periodMs, startMs }: MetricBlockPeriod, block: Buffer): number {
  return crc32(block.subarray(headerBytes), crc32(`${periodMs} ${startMs}`));
}

/**
 * Decodes a block. Throws RangeError if the block is damaged or has an unknown version. Histograms are views of the
 * block.
 */
export function* decodeBlock(location: MetricBlockPeriod, block: Uint8Array): Generator<StoredPoint> {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  const found = bytes.readUInt8(0);
  if (found !== version && found !== versionBefore) throw new RangeError(`a block of version ${found}`);
  if (found === version && bytes.readUInt32LE(1) !== checksumOf(location, bytes)) {
    throw new RangeError("a block with a wrong checksum");
  }
  for (let at = found === version ? headerBytes : 1; at < bytes.byteLength;) {
    const flags = bytes.readUInt8(at + 40);
    const end = at + pointBytes + bytes.readUInt16LE(at + 41);
    if (end > bytes.byteLength) throw new RangeError("a block that ends too early");
    yield {
      seriesNumber: bytes.readUIntLE(at, 6),
      periodMs: location.periodMs,
      startMs: location.startMs + bytes.readUInt16LE(at + 6) * location.periodMs,
      sampleCount: bytes.readDoubleLE(at + 8),
      sum: bytes.readDoubleLE(at + 16),
      minimum: bytes.readDoubleLE(at + 24),
      maximum: bytes.readDoubleLE(at + 32),
      histogram: (flags & knowsValues) === 0 ? null : bytes.subarray(at + pointBytes, end),
    };
    at = end;
  }
}
