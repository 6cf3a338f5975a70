import { createHash } from "node:crypto";
import { IncomingMessage } from "node:http";
import { createGunzip } from "node:zlib";
import { AwsError, readToBuffer, reserveCallMemory, type ByteLease } from "@galatea/base";
import type { RawExchange } from "./service-row.ts";

/** Maximum output of one decompression step, in bytes. */
const inflateStepBytes = 64 * 1024;

/**
 * Reads a body of at most `bytesMax` bytes and computes its SHA-256. Rejects a longer body before it is buffered. The
 * hash is computed chunk by chunk, because hashing a long body at once would block the event loop.
 */
export async function readHashedBody(
  request: IncomingMessage,
  bytesMax: number,
  memory: ByteLease,
): Promise<{ readonly body: Buffer; readonly sha256Hex: string }> {
  const announced = announcedLength(request, bytesMax, memory);
  const hash = createHash("sha256");
  const take = (bytes: number, chunk: Buffer) => {
    if (announced === null) reserveCallMemory(memory, bytes);
    hash.update(chunk);
  };
  const body = await readToBuffer(request, bytesMax, () => tooLarge(bytesMax), take);
  return { body, sha256Hex: hash.digest("hex") };
}

/** Returns the announced length of the body and reserves memory for it; null if the request announces none. */
function announcedLength(request: IncomingMessage, bytesMax: number, memory: ByteLease): number | null {
  const announced = request.headers["content-length"];
  if (announced === undefined) return null;
  if (Number(announced) > bytesMax) throw tooLarge(bytesMax);
  reserveCallMemory(memory, Number(announced));
  return Number(announced);
}

/**
 * Decodes `Content-Encoding: gzip`, which publishers of metrics use. Reserves memory for the output step by step. A
 * small body therefore needs little memory, and a decompression bomb is rejected when the memory budget is exhausted.
 * Throws AwsError for a body over `bytesMax`, for exhausted memory and for invalid gzip, and then releases the reserved
 * memory.
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
      reserveCallMemory(memory, chunk.length);
      inflatedBytes += chunk.length;
      chunks.push(chunk);
    }
    // The chunks and their concatenation exist at the same time, so memory is reserved for both.
    reserveCallMemory(memory, inflatedBytes);
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
 * Verifies a request's signature, which requires the body, and returns the request with the buffered body. Without
 * authentication, returns the request with its body unread. Rejects a caller without a known key before buffering.
 * `service` is the called service's name in credential scopes.
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
