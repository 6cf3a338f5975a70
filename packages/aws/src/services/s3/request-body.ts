import { Readable } from "node:stream";
import { AwsError, readToBuffer } from "@galatea/base";
import {
  checkBody,
  computeDigest,
  type BodyExpectation,
  type DigestName,
  type PutOptions,
} from "@galatea/hosting/objects";
import { ChunkFramingError, ChunkSizeError, decodeAwsChunked } from "../../signing/index.ts";
import {
  announcedAlgorithms,
  announcedChecksums,
  announcedTrailers,
  malformedTrailer,
  trailingChecksums,
  type AnnouncedChecksum,
} from "./announced-checksums.ts";
import { freeChunk, incomingBytes } from "./incoming-bytes.ts";
import type { S3Request } from "./s3-request.ts";

export interface RequestBody {
  readonly body: Readable;
  readonly expect: BodyExpectation;
  readonly released?: PutOptions["released"];
}

/**
 * Returns the request's decoded bytes, and the checksums and length to expect. The caller must read or destroy the
 * stream.
 */
export function openBody(request: S3Request): RequestBody {
  const { headers, payload } = request;
  const trailers = new Map<string, string>();
  const isChunked = payload.at === "chunks" || payload.at === "unsigned-trailer";
  const chain = payload.at === "chunks" ? payload.chain : null;
  const byteLength = lengthOf(request, isChunked);
  const announcedNames = announcedAlgorithms(headers);
  const input = announcedChecksums(headers);
  if (!isChunked && announcedTrailers(headers).length > 0) throw malformedTrailer();
  const md5 = headers["content-md5"];
  if (md5 !== undefined && Buffer.from(md5, "base64").byteLength !== 16) {
    throw new AwsError("InvalidDigest", "The Content-MD5 you specified was invalid.");
  }
  let trailing: readonly AnnouncedChecksum[] = [];
  const announced = () => ({
    ...Object.fromEntries([...input, ...trailing]),
    ...(md5 === undefined ? {} : { md5 }),
    ...(payload.at === "sha256" ? { signedSha256: Buffer.from(payload.hex, "hex").toString("base64") } : {}),
  });
  const algorithms = payload.at === "sha256" ? [...announcedNames, "sha256" as const] : announcedNames;
  const source = incomingBytes(request);
  const readTrailers = () => {
    trailing = trailingChecksums(headers, trailers);
  };
  const body = isChunked
    ? unframed(source, decodeAwsChunked(source as AsyncIterable<Buffer>, { chain, trailers }), readTrailers)
    : source;
  return {
    body,
    expect: { algorithms, announced, ...(byteLength === null ? {} : { byteLength }) },
    // Chunks of aws-chunked bodies are slices of larger buffers, which must not be freed.
    ...(isChunked ? {} : { released: freeChunk }),
  };
}

/**
 * Converts an iterator of chunks to a stream. `Readable.from` would wait for the pending read when it is destroyed, and
 * a client that sends nothing more would block that for ever.
 */
function unframed(source: Readable, chunks: AsyncIterator<Buffer>, atEnd: () => void): Readable {
  const read = async () => {
    const { done, value } = await chunks.next();
    if (done === true) atEnd();
    return done === true ? null : value;
  };
  const body: Readable = new Readable({
    objectMode: true,
    highWaterMark: 1,
    read: () =>
      void read().then(
        (chunk) => body.push(chunk),
        (cause: unknown) => body.destroy(framingError(cause)),
      ),
    destroy(error, done) {
      source.destroy();
      done(error);
    },
  });
  return body;
}

function framingError(cause: unknown): Error {
  if (cause instanceof ChunkSizeError) {
    const message = "Only the last chunk is allowed to have a size less than 8192 bytes";
    return new AwsError("InvalidChunkSizeError", message, { cause, statusFallback: 403 });
  }
  if (!(cause instanceof ChunkFramingError)) return cause as Error;
  const message = `The request body is not framed as aws-chunked: ${cause.message}`;
  return new AwsError("IncompleteBody", message, { cause });
}

/** Returns the announced length of the decoded body; null if the request announces none. */
export function bodyBytesOf(request: S3Request): number | null {
  const { at } = request.payload;
  return lengthOf(request, at === "chunks" || at === "unsigned-trailer");
}

function lengthOf(request: S3Request, isChunked: boolean): number | null {
  const text = request.headers[isChunked ? "x-amz-decoded-content-length" : "content-length"];
  if (text !== undefined && /^\d{1,15}$/.test(text)) return Number(text);
  if (request.headers["transfer-encoding"] !== undefined && !isChunked) return null;
  throw new AwsError("MissingContentLength", "You must provide the Content-Length HTTP header.", {
    statusFallback: 411,
  });
}

/** Reads a small document to a buffer, and verifies its checksums and length. */
export async function readDocument(request: S3Request, bytesMax: number): Promise<Buffer> {
  const { body, expect } = openBody(request);
  const tooLong = () => new AwsError("MalformedXML", `The document is longer than ${bytesMax} bytes`);
  let document: Buffer;
  try {
    if (expect.byteLength !== undefined && expect.byteLength > bytesMax) throw tooLong();
    document = await readToBuffer(body, bytesMax, tooLong);
  } finally {
    body.destroy();
  }
  const names = Object.keys(expect.announced()).map(
    (name) => (name === "signedSha256" ? "sha256" : name) as DigestName,
  );
  const digests = Object.fromEntries(names.map((name) => [name, computeDigest(name, document)]));
  checkBody({ byteLength: document.byteLength, digests }, expect);
  return document;
}
