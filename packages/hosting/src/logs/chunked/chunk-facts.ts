import { readLinesFrom } from "../log-chunks.ts";
import type { Segment, SegmentBytes } from "../log-storage.ts";
import { sha256Of } from "./chunk-objects.ts";
import type { ChunkRecord } from "./log-records.ts";

/** Returns a segment's lines that are in memory. */
export function bytesInMemory(content: Buffer): SegmentBytes {
  return {
    byteLength: async () => content.byteLength,
    read: async (offset, byteLength) => content.subarray(offset, offset + byteLength),
    [Symbol.asyncDispose]: async () => {},
  };
}

/** Computes the record of a chunk from its lines. `fallbackMs` is the time of a chunk without readable lines. */
export async function describeChunk(
  content: Buffer,
  { segment, isSealed, fallbackMs }: Pick<ChunkRecord, "segment" | "isSealed"> & { readonly fallbackMs: number },
): Promise<ChunkRecord> {
  const source: Segment = { segment, times: null, open: async () => bytesInMemory(content) };
  let [firstMs, lastMs, lineCount] = [Infinity, -Infinity, 0];
  for await (const lines of readLinesFrom(source, 0)) {
    for (const { timestampMs } of lines) {
      firstMs = Math.min(firstMs, timestampMs);
      lastMs = Math.max(lastMs, timestampMs);
    }
    lineCount += lines.length;
  }
  if (lineCount === 0) [firstMs, lastMs] = [fallbackMs, fallbackMs];
  return {
    segment,
    firstMs,
    lastMs,
    lineCount,
    bytes: content.byteLength,
    sha256: await sha256Of(content),
    isSealed,
  };
}
