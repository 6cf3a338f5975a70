import { promisify } from "node:util";
import { createUnzip, deflate, gzip } from "node:zlib";
import { InferenceError, type ByteLease } from "@galatea/base";
import { BufferedBody } from "../http-listener/index.ts";
import type { InflationSlot } from "../inflation-slot.ts";

export type RequestEncoding = "identity" | "compressed";
export type ResponseEncoding = "identity" | "gzip" | "deflate";

/** Returns the encoding of a Content-Encoding header; null for one that Triton does not support. Names are case-sensitive. */
export function requestEncoding(header: string | undefined): RequestEncoding | null {
  if (header === undefined || header === "" || header === "identity") return "identity";
  return header === "gzip" || header === "deflate" ? "compressed" : null;
}

const compressors = { gzip: promisify(gzip), deflate: promisify(deflate) } as const;

/** Chunk size of decompressed output. */
const inflateStepBytes = 64 * 1024;

interface InflationOptions {
  readonly outputBytesMax: number;
  readonly memory: ByteLease;
  readonly slot: InflationSlot;
}

/**
 * Decompresses gzip or zlib data. Throws INVALID_ARG for invalid data and for output over --http-max-input-size. The output is charged to
 * `memory` as it grows, so that a small body with a huge content is rejected before it exhausts the memory.
 */
export async function decompress(
  packed: BufferedBody,
  { outputBytesMax, memory, slot }: InflationOptions,
): Promise<BufferedBody> {
  const body = packed.bytes();
  if (body.length === 0) throw notInflated("nothing to be decompressed");
  const unzip = createUnzip({ chunkSize: inflateStepBytes });
  const inflated = new BufferedBody(-1, memory);
  let outputBytes = 0;
  unzip.end(body);
  try {
    for await (const chunk of unzip as AsyncIterable<Buffer>) {
      outputBytes += chunk.length;
      if (outputBytes > outputBytesMax) throw tooLarge(outputBytesMax);
      await slot.reach(outputBytes);
      inflated.write(chunk);
    }
  } catch (error) {
    inflated.discard();
    if (error instanceof InferenceError) throw error;
    throw notInflated(`failed to decompress the request body: ${(error as Error).message}`, error);
  }
  return inflated;
}

function notInflated(message: string, cause?: unknown): InferenceError {
  return new InferenceError("INVALID_ARG", message, { cause, reason: "inflation-failed" });
}

function tooLarge(outputBytesMax: number): InferenceError {
  return notInflated(
    `Decompressed data size exceeds the maximum allowed value of ${outputBytesMax} bytes. Use --http-max-input-size to increase the limit.`,
  );
}

export function compress(chunks: readonly Uint8Array[], encoding: "gzip" | "deflate"): Promise<Buffer> {
  return compressors[encoding](chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
}

/**
 * Returns the supported encoding with the highest q-value of an Accept-Encoding header. If q-values are equal, the first encoding is
 * returned. `*` and unknown encodings are ignored; an invalid q-value counts as 0.
 */
export function responseEncoding(header: string | undefined): ResponseEncoding {
  if (header === undefined || header === "identity") return "identity";
  let best: ResponseEncoding = "identity";
  let bestQuality = 0;
  for (const item of header.split(",")) {
    const [name, ...parameters] = item.split(";").map((segment) => segment.trim());
    if (name !== "gzip" && name !== "deflate" && name !== "identity") continue;
    const weight = parameters.find((parameter) => parameter.startsWith("q="));
    const quality = weight === undefined ? 1 : Number(weight.slice(2));
    if (quality > bestQuality) {
      best = name;
      bestQuality = quality;
    }
  }
  return best;
}
