import { promisify } from "node:util";
import { createGunzip, createInflate, deflate, gzip, type ZlibOptions } from "node:zlib";
import { InferenceError, type ByteLease } from "@galatea/base";
import type { InflationSlot } from "../inflation-slot.ts";
import { BufferedMessage } from "./buffered-message.ts";
import { GrpcError } from "./status.ts";

/** Encodings of messages, by their names in the header `grpc-encoding`. */
export type MessageEncoding = "identity" | "gzip" | "deflate";

export const acceptedEncodings = "identity, deflate, gzip";

/** Chunk size of decompressed output. */
const inflateStepBytes = 64 * 1024;
const expanders = { gzip: createGunzip, deflate: createInflate } as const;
const compressors = {
  gzip: promisify<Uint8Array, ZlibOptions, Buffer>(gzip),
  deflate: promisify<Uint8Array, ZlibOptions, Buffer>(deflate),
} as const;

/** Returns the encoding that the header names, identity without a header, and null for an unknown encoding. */
export function messageEncoding(header: string | undefined): MessageEncoding | null {
  if (header === undefined || header === "identity") return "identity";
  return header === "gzip" || header === "deflate" ? header : null;
}

interface ExpansionOptions {
  readonly messageBytesMax: number;
  readonly memory: ByteLease;
  readonly slot: InflationSlot;
}

/**
 * Decompresses a message in the thread pool. The output is charged to `memory` as it grows. A message is rejected as soon as its output
 * exceeds the size limit.
 */
export async function decompressMessage(
  packed: Uint8Array,
  encoding: MessageEncoding,
  { messageBytesMax, memory, slot }: ExpansionOptions,
): Promise<BufferedMessage> {
  if (encoding === "identity")
    throw new GrpcError("INTERNAL", "a message is marked as compressed, but grpc-encoding names no compression");
  const expanded = new BufferedMessage(messageBytesMax, memory);
  const expander = expanders[encoding]({ chunkSize: inflateStepBytes });
  expander.end(packed);
  let byteLength = 0;
  try {
    for await (const chunk of expander as AsyncIterable<Buffer>) {
      byteLength += chunk.length;
      if (byteLength > messageBytesMax)
        throw new GrpcError(
          "RESOURCE_EXHAUSTED",
          `Received message larger than max (${messageBytesMax}) when expanded`,
        );
      await slot.reach(byteLength);
      expanded.write(chunk);
    }
  } catch (error) {
    memory.shrinkBy(expanded.heldBytes);
    if (error instanceof GrpcError || error instanceof InferenceError) throw error;
    throw new GrpcError("INTERNAL", `failed to expand a message with ${encoding}: ${(error as Error).message}`, {
      cause: error,
    });
  }
  return expanded;
}

/** zlib's level for each value of --grpc-infer-response-compression-level; null: responses are not compressed. */
export const compressionLevels = { none: null, low: 1, medium: 6, high: 9 } as const;
export type CompressionLevel = keyof typeof compressionLevels;

/** Returns the first supported encoding that the client accepts. */
export function grpcResponseEncoding(acceptHeader: string | undefined, level: CompressionLevel): MessageEncoding {
  if (level === "none" || acceptHeader === undefined) return "identity";
  const accepted = acceptHeader.split(",").map((name) => name.trim());
  if (accepted.includes("gzip")) return "gzip";
  return accepted.includes("deflate") ? "deflate" : "identity";
}

export function compressMessage(
  chunks: readonly Uint8Array[],
  encoding: "gzip" | "deflate",
  level: CompressionLevel,
): Promise<Buffer> {
  const complete = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  return compressors[encoding](complete, { level: compressionLevels[level] ?? 6 });
}
