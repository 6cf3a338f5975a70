import { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { AwsError, readWhole } from "../../base/index.ts";

const inflate = promisify(gunzip);

/** Reads a whole body of at most `bytesMax`; a longer one is refused before it is held. */
export async function readBody(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  if (Number(request.headers["content-length"] ?? 0) > bytesMax) throw tooLarge(bytesMax);
  return await readWhole(request, bytesMax, () => tooLarge(bytesMax));
}

/** Undoes `Content-Encoding: gzip`, which metric publishers use; the bound holds for what comes out. */
export async function decodeBody(request: IncomingMessage, body: Buffer, bytesMax: number): Promise<Buffer> {
  const encoding = request.headers["content-encoding"];
  if (encoding === undefined || encoding === "identity" || encoding === "amz-1.0") return body;
  if (encoding !== "gzip")
    throw new AwsError("SerializationException", `Content-Encoding '${encoding}' is not supported`);
  try {
    return await inflate(body, { maxOutputLength: bytesMax });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw tooLarge(bytesMax);
    throw new AwsError("SerializationException", "The request body is not gzip", { cause });
  }
}

/** The same request with its body already read, for a service that reads it again after the signature was verified. */
export function withBody(request: IncomingMessage, body: Buffer): IncomingMessage {
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
