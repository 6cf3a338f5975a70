import { promisify } from "node:util";
import { deflate, gzip, unzip } from "node:zlib";
import { InferenceError } from "../../base/index.ts";

export type RequestEncoding = "identity" | "compressed";
export type ResponseEncoding = "identity" | "gzip" | "deflate";

/** What a Content-Encoding header asks for; null for one that the original does not know (it compares case by case). */
export function requestEncoding(header: string | undefined): RequestEncoding | null {
  if (header === undefined || header === "" || header === "identity") return "identity";
  return header === "gzip" || header === "deflate" ? "compressed" : null;
}

const unzipAsync = promisify(unzip);
const compressors = { gzip: promisify(gzip), deflate: promisify(deflate) } as const;

/** Expands gzip or zlib data, whichever it is. Throws INVALID_ARG; the bound is --http-max-input-size. */
export async function decompress(body: Uint8Array, outputBytesMax: number): Promise<Buffer> {
  if (body.length === 0) throw new InferenceError("INVALID_ARG", "nothing to be decompressed");
  try {
    return await unzipAsync(body, { maxOutputLength: outputBytesMax });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new InferenceError(
      "INVALID_ARG",
      code === "ERR_BUFFER_TOO_LARGE"
        ? `Decompressed data size exceeds the maximum allowed value of ${outputBytesMax} bytes. Use --http-max-input-size to increase the limit.`
        : `failed to decompress the request body: ${message}`,
      { cause: error },
    );
  }
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
