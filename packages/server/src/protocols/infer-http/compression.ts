import { promisify } from "node:util";
import { createUnzip, deflate, gzip } from "node:zlib";
import { InferenceError, type ByteLease } from "@galatea/base";
import { GatheredBody } from "../http-listener/index.ts";

export type RequestEncoding = "identity" | "compressed";
export type ResponseEncoding = "identity" | "gzip" | "deflate";

/** What a Content-Encoding header asks for; null for one that Triton does not know (it compares case by case). */
export function requestEncoding(header: string | undefined): RequestEncoding | null {
  if (header === undefined || header === "" || header === "identity") return "identity";
  return header === "gzip" || header === "deflate" ? "compressed" : null;
}

const compressors = { gzip: promisify(gzip), deflate: promisify(deflate) } as const;

/** What comes out of one step of inflation. */
const inflateStepBytes = 64 * 1024;

/**
 * Expands gzip or zlib data, whichever it is. Throws INVALID_ARG; the bound is --http-max-input-size. What comes out is taken from `memory`
 * as it comes, so that a small body that becomes a large one is refused where memory ends.
 */
export async function decompress(
  packed: GatheredBody,
  { outputBytesMax, memory }: { readonly outputBytesMax: number; readonly memory: ByteLease },
): Promise<GatheredBody> {
  const body = packed.bytes();
  if (body.length === 0) throw notInflated("nothing to be decompressed");
  const unzip = createUnzip({ chunkSize: inflateStepBytes });
  const inflated = new GatheredBody(-1, memory);
  let outputBytes = 0;
  unzip.end(body);
  try {
    for await (const piece of unzip as AsyncIterable<Buffer>) {
      outputBytes += piece.length;
      if (outputBytes > outputBytesMax) throw tooLarge(outputBytesMax);
      inflated.write(piece);
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

export function compress(pieces: readonly Uint8Array[], encoding: "gzip" | "deflate"): Promise<Buffer> {
  return compressors[encoding](pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces));
}

/**
 * The encoding with the highest q-value among those known; the first named wins a tie, `*` and unknown ones are passed over,
 * and a q-value that is no number counts as 0.
 */
export function responseEncoding(header: string | undefined): ResponseEncoding {
  if (header === undefined || header === "identity") return "identity";
  let best: ResponseEncoding = "identity";
  let bestQuality = 0;
  for (const item of header.split(",")) {
    const [name, ...parameters] = item.split(";").map((part) => part.trim());
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
