import { createHash } from "node:crypto";
import { IncomingMessage } from "node:http";
import { createGunzip } from "node:zlib";
import { AwsError, readToBuffer, takeForCall, type ByteLease } from "@galatea/base";
import type { RawExchange } from "./service-row.ts";

/** Bytes that one step of inflation yields at most. */
const inflateStepBytes = 64 * 1024;

/**
 * Reads a whole body of at most `bytesMax`, a longer one is refused before it is held; with the SHA-256 of the bytes, computed piece by
 * piece, because that of a long body all at once would hold everybody up.
 */
export async function readHashedBody(
  request: IncomingMessage,
  bytesMax: number,
  memory: ByteLease,
): Promise<{ readonly body: Buffer; readonly sha256Hex: string }> {
  const announced = announcedLength(request, bytesMax, memory);
  const hash = createHash("sha256");
  const take = (bytes: number, piece: Buffer) => {
    if (announced === null) takeForCall(memory, bytes);
    hash.update(piece);
  };
  const body = await readToBuffer(request, bytesMax, () => tooLarge(bytesMax), take);
  return { body, sha256Hex: hash.digest("hex") };
}

/** Null where the request does not say; else its memory is taken. */
function announcedLength(request: IncomingMessage, bytesMax: number, memory: ByteLease): number | null {
  const announced = request.headers["content-length"];
  if (announced === undefined) return null;
  if (Number(announced) > bytesMax) throw tooLarge(bytesMax);
  takeForCall(memory, Number(announced));
  return Number(announced);
}

/**
 * Undoes `Content-Encoding: gzip`, which metric publishers use. Takes memory for the inflated bytes step by step, so that a small body
 * takes little and a body that inflates to much is refused where memory ends. Throws AwsError for a body over `bytesMax`, for one that
 * finds no memory, and for one that is not gzip; the memory taken until then is returned.
 */
export async function decodeBody(
  request: IncomingMessage,
  body: Buffer,
  { bytesMax, memory }: { readonly bytesMax: number; readonly memory: ByteLease },
): Promise<Buffer> {
  const encoding = request.headers["content-encoding"];
  if (encoding === undefined || encoding === "identity" || encoding === "amz-1.0") return body;
  if (encoding !== "gzip")
    throw new AwsError("SerializationException", `Content-Encoding '${encoding}' is not supported`);
  const gunzip = createGunzip({ chunkSize: inflateStepBytes });
  const chunks: Buffer[] = [];
  let inflatedBytes = 0;
  gunzip.end(body);
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      if (inflatedBytes + chunk.length > bytesMax) throw tooLarge(bytesMax);
      takeForCall(memory, chunk.length);
      inflatedBytes += chunk.length;
      chunks.push(chunk);
    }
    // The chunks and their copy exist at the same time.
    takeForCall(memory, inflatedBytes);
    const inflated = Buffer.concat(chunks, inflatedBytes);
    memory.shrinkBy(inflatedBytes);
    return inflated;
  } catch (cause) {
    memory.shrinkBy(inflatedBytes);
    if (cause instanceof AwsError) throw cause;
    throw new AwsError("SerializationException", "The request body is not gzip", { cause });
  }
}

/**
 * The request itself where nothing is verified; else, once its signature is, the same request with its body already read. Who has no
 * key has no body held for it. `service`: the name of the called service in credential scopes.
 */
export async function verifiedRequest(
  { request, response, context, authenticator }: RawExchange,
  bytesMax: number,
  service: string,
): Promise<IncomingMessage> {
  const { method = "GET", url = "/", headers } = request;
  authenticator?.identify({ method, url, headers });
  if (headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
  if (authenticator === null) return request;
  const read = await readHashedBody(request, bytesMax, context.memory);
  authenticator.verify({ method, url, headers }, read.sha256Hex, service);
  return withBody(request, read.body);
}

function withBody(request: IncomingMessage, body: Buffer): IncomingMessage {
  const copy = new IncomingMessage(request.socket);
  copy.method = request.method ?? "GET";
  copy.url = request.url ?? "/";
  copy.httpVersion = request.httpVersion;
  copy.headers = request.headers;
  copy.rawHeaders = request.rawHeaders;
  copy.complete = true;
  copy.push(body);
  copy.push(null);
  return copy;
}

function tooLarge(bytesMax: number): AwsError {
  return new AwsError("RequestEntityTooLargeException", `HTTP content length exceeded ${bytesMax} bytes.`, {
    statusFallback: 413,
  });
}
