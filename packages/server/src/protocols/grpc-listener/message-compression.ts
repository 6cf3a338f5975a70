import { promisify } from "node:util";
import { createGunzip, createInflate, deflate, gzip, type ZlibOptions } from "node:zlib";
import { InferenceError, type ByteLease } from "@galatea/base";
import type { InflationSlot } from "../inflation-slot.ts";
import { GatheredMessage } from "./gathered-message.ts";
import { GrpcError } from "./status.ts";

/** Encodings of messages, by the names of the header `grpc-encoding`. */
export type MessageEncoding = "identity" | "gzip" | "deflate";

export const acceptedEncodings = "identity, deflate, gzip";

/** Size of the output of one inflation step. */
const inflateStepBytes = 64 * 1024;
const expanders = { gzip: createGunzip, deflate: createInflate } as const;
const compressors = {
  gzip: promisify<Uint8Array, ZlibOptions, Buffer>(gzip),
  deflate: promisify<Uint8Array, ZlibOptions, Buffer>(deflate),
} as const;

/** Returns null for an unknown encoding. */
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
 * Decompresses a whole message in the thread pool. Its output is charged to `memory` as it grows; a message over the limit is rejected
 * when it exceeds it.
 */
export async function expandMessage(
  packed: Uint8Array,
  encoding: MessageEncoding,
  { messageBytesMax, memory, slot }: ExpansionOptions,
): Promise<GatheredMessage> {
  if (encoding === "identity")
    throw new GrpcError("INTERNAL", "a message is marked as compressed, but grpc-encoding names no compression");
  const expanded = new GatheredMessage(messageBytesMax, memory);
  const expander = expanders[encoding]({ chunkSize: inflateStepBytes });
  expander.end(packed);
  let byteLength = 0;
  try {
    for await (const piece of expander as AsyncIterable<Buffer>) {
      byteLength += piece.length;
      if (byteLength > messageBytesMax)
        throw new GrpcError(
          "RESOURCE_EXHAUSTED",
          `Received message larger than max (${messageBytesMax}) when expanded`,
        );
      await slot.reach(byteLength);
      expanded.write(piece);
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

/** zlib's levels by --grpc-infer-response-compression-level; null: responses are not compressed. */
export const compressionLevels = { none: null, low: 1, medium: 6, high: 9 } as const;
export type CompressionLevel = keyof typeof compressionLevels;

/** Returns the first supported encoding that the client accepts. */
export function answerEncoding(acceptHeader: string | undefined, level: CompressionLevel): MessageEncoding {
  if (level === "none" || acceptHeader === undefined) return "identity";
  const accepted = acceptHeader.split(",").map((name) => name.trim());
  if (accepted.includes("gzip")) return "gzip";
  return accepted.includes("deflate") ? "deflate" : "identity";
}

export function compressMessage(
  pieces: readonly Uint8Array[],
  encoding: "gzip" | "deflate",
  level: CompressionLevel,
): Promise<Buffer> {
  const whole = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
  return compressors[encoding](whole, { level: compressionLevels[level] ?? 6 });
}
