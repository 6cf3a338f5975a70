import { promisify } from "node:util";
import { createGunzip, createInflate, deflate, gzip, type ZlibOptions } from "node:zlib";
import { InferenceError, type ByteLease } from "@galatea/base";
import { GatheredMessage } from "./gathered-message.ts";
import { GrpcError } from "./status.ts";

/** What messages may be packed with, by the names of the header `grpc-encoding`. */
export type MessageEncoding = "identity" | "gzip" | "deflate";

export const acceptedEncodings = "identity, deflate, gzip";

/** What comes out of one step of inflation. */
const inflateStepBytes = 64 * 1024;
const expanders = { gzip: createGunzip, deflate: createInflate } as const;
const compressors = {
  gzip: promisify<Uint8Array, ZlibOptions, Buffer>(gzip),
  deflate: promisify<Uint8Array, ZlibOptions, Buffer>(deflate),
} as const;

/** Null for an encoding that this server does not know. */
export function messageEncoding(header: string | undefined): MessageEncoding | null {
  if (header === undefined || header === "identity") return "identity";
  return header === "gzip" || header === "deflate" ? header : null;
}

/**
 * Expands a whole message, off the event loop. What comes out is taken from `memory` as it comes; a message beyond the bound ends where
 * it passes it.
 */
export async function expandMessage(
  packed: Uint8Array,
  encoding: MessageEncoding,
  { messageBytesMax, memory }: { readonly messageBytesMax: number; readonly memory: ByteLease },
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

/** --grpc-infer-response-compression-level to zlib's; null: responses are not compressed. */
export const compressionLevels = { none: null, low: 1, medium: 6, high: 9 } as const;
export type CompressionLevel = keyof typeof compressionLevels;

/** The first of ours that the client accepts. */
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
