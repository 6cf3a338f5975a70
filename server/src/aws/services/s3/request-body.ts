import { Readable } from "node:stream";
import { AwsError } from "../../../base/index.ts";
import { checksumAlgorithms, digestOf, type BodyExpectation, type ChecksumAlgorithm } from "../../../blobs/index.ts";
import { ChunkFramingError, decodeAwsChunked, type ChunkChain } from "../../../signing/index.ts";
import type { S3Request } from "./s3-request.ts";

export interface RequestBody {
  readonly body: Readable;
  readonly expect: BodyExpectation;
}

/**
 * The request's bytes with their framing undone, and what they have to be. Reading starts when the stream is read: only then is
 * a client that waits for `100 Continue` told to send. Destroying the stream leaves the connection usable for the answer.
 */
export function openBody(request: S3Request): RequestBody {
  const { headers, payload } = request;
  const trailers = new Map<string, string>();
  const isChunked = payload.at === "chunks" || payload.at === "unsigned-trailer";
  const chain = payload.at === "chunks" ? payload.chain : null;
  const byteLength = lengthOf(request, isChunked);
  const announcedNames = announcedAlgorithms(headers);
  const md5 = headers["content-md5"];
  if (md5 !== undefined && Buffer.from(md5, "base64").byteLength !== 16) {
    throw new AwsError("InvalidDigest", "The Content-MD5 you specified was invalid.");
  }
  const announced = () => {
    const values: Partial<Record<ChecksumAlgorithm | "md5" | "signedSha256", string>> = {};
    for (const name of announcedNames) {
      const value = headers[`x-amz-checksum-${name}`] ?? trailers.get(`x-amz-checksum-${name}`);
      if (value !== undefined) values[name] = value;
    }
    if (md5 !== undefined) values.md5 = md5;
    if (payload.at === "sha256") values.signedSha256 = Buffer.from(payload.hex, "hex").toString("base64");
    return values;
  };
  const algorithms = payload.at === "sha256" ? [...announcedNames, "sha256" as const] : announcedNames;
  const body = Readable.from(bytesOf(request, isChunked, chain, trailers), { objectMode: true, highWaterMark: 1 });
  return { body, expect: { algorithms, announced, ...(byteLength === null ? {} : { byteLength }) } };
}

async function* bytesOf(
  request: S3Request,
  isChunked: boolean,
  chain: ChunkChain | null,
  trailers: Map<string, string>,
): AsyncGenerator<Buffer> {
  if (request.headers["expect"]?.toLowerCase() === "100-continue") request.response.writeContinue();
  const source = request.incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  try {
    yield* isChunked ? decodeAwsChunked(source, { chain, trailers }) : source;
  } catch (cause) {
    if (!(cause instanceof ChunkFramingError)) throw cause;
    throw new AwsError("IncompleteBody", `The request body is not framed as aws-chunked: ${cause.message}`, { cause });
  }
}

function lengthOf(request: S3Request, isChunked: boolean): number | null {
  const text = request.headers[isChunked ? "x-amz-decoded-content-length" : "content-length"];
  if (text !== undefined && /^\d{1,15}$/.test(text)) return Number(text);
  if (request.headers["transfer-encoding"] !== undefined && !isChunked) return null;
  throw new AwsError("MissingContentLength", "You must provide the Content-Length HTTP header.", {
    statusFallback: 411,
  });
}

/** Named by a value, by a trailer to come, or by the SDK's wish. */
export function announcedAlgorithms(headers: S3Request["headers"]): ChecksumAlgorithm[] {
  const trailer = (headers["x-amz-trailer"] ?? "").toLowerCase();
  const wished = algorithmOf(headers["x-amz-sdk-checksum-algorithm"]);
  return checksumAlgorithms.filter(
    (name) =>
      headers[`x-amz-checksum-${name}`] !== undefined || trailer.includes(`x-amz-checksum-${name}`) || wished === name,
  );
}

export function algorithmOf(text: string | undefined): ChecksumAlgorithm | null {
  if (text === undefined) return null;
  const found = checksumAlgorithms.find((name) => name.toUpperCase() === text.toUpperCase());
  if (found !== undefined) return found;
  throw new AwsError(
    "InvalidRequest",
    `Checksum algorithm provided is unsupported. Please try again with any of the valid types: [${checksumAlgorithms.map((name) => name.toUpperCase()).join(", ")}]`,
  );
}

/** A small document, whole and checked. */
export async function readDocument(request: S3Request, bytesMax: number): Promise<Buffer> {
  const { body, expect } = openBody(request);
  const chunks: Buffer[] = [];
  let byteLength = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    byteLength += chunk.byteLength;
    if (byteLength > bytesMax) throw new AwsError("MalformedXML", `The document is longer than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  const document = Buffer.concat(chunks);
  for (const [name, value] of Object.entries(expect.announced())) {
    const found = digestOf(name === "signedSha256" ? "sha256" : (name as ChecksumAlgorithm | "md5"), document);
    if (found === value) continue;
    const code = name === "signedSha256" ? "XAmzContentSHA256Mismatch" : "BadDigest";
    throw new AwsError(code, `The ${name} you specified did not match what we received.`);
  }
  return document;
}
