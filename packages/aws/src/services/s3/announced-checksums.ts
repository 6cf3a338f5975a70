import { AwsError } from "@galatea/base";
import { checksumAlgorithms, type ChecksumAlgorithm } from "@galatea/hosting/objects";
import type { S3Request } from "./s3-request.ts";

export type AnnouncedChecksum = readonly [algorithm: ChecksumAlgorithm, value: string];

const digestBytes: Readonly<Record<ChecksumAlgorithm, number>> = {
  crc32: 4,
  crc32c: 4,
  crc64nvme: 8,
  sha1: 20,
  sha256: 32,
};

const prefix = "x-amz-checksum-";
/** Headers with the prefix that do not contain a checksum. */
const otherNames: ReadonlySet<string> = new Set(["algorithm", "type", "mode"].map((name) => `${prefix}${name}`));

/** Returns the checksum in the headers, as a list with at most one item. */
export function announcedChecksums(headers: S3Request["headers"]): readonly AnnouncedChecksum[] {
  const input = Object.entries(headers).flatMap(([name, value]) =>
    name.startsWith(prefix) && !otherNames.has(name) && value !== undefined ? [checksumOf(name, value)] : [],
  );
  if (input.length > 1) throw severalChecksums();
  return input;
}

/** Returns the names of the announced trailers, which contain checksums. */
export function announcedTrailers(headers: S3Request["headers"]): readonly string[] {
  const names = (headers["x-amz-trailer"] ?? "").toLowerCase().split(",");
  const announced = names.map((name) => name.trim()).filter((name) => name !== "");
  for (const name of announced) if (name.startsWith(prefix)) builtAlgorithm(name);
  return announced;
}

/**
 * Returns the algorithms whose checksums to compute for a body. A checksum header, a trailer or an algorithm header
 * names them.
 */
export function announcedAlgorithms(headers: S3Request["headers"]): ChecksumAlgorithm[] {
  const input = announcedChecksums(headers).map(([algorithm]) => algorithm);
  const trailing = announcedTrailers(headers)
    .filter((name) => name.startsWith(prefix))
    .map(builtAlgorithm);
  if (input.length + trailing.length > 1) throw severalChecksums();
  const wished = parseChecksumAlgorithm(headers["x-amz-sdk-checksum-algorithm"]);
  const algorithms = [...input, ...trailing];
  return algorithms.length > 0 || wished === null ? algorithms : [wished];
}

/** Returns the checksums in the trailers, once the body has ended. Throws if an announced trailer is missing. */
export function trailingChecksums(
  headers: S3Request["headers"],
  trailers: ReadonlyMap<string, string>,
): readonly AnnouncedChecksum[] {
  return announcedTrailers(headers).flatMap((name) => {
    const value = trailers.get(name);
    if (value === undefined) throw malformedTrailer();
    return name.startsWith(prefix) ? [checksumOf(name, value)] : [];
  });
}

export function malformedTrailer(): AwsError {
  return new AwsError(
    "MalformedTrailerError",
    "The request contained trailing data that was not well-formed or did not conform to our published schema.",
  );
}

export function parseChecksumAlgorithm(text: string | undefined): ChecksumAlgorithm | null {
  if (text === undefined) return null;
  const found = checksumAlgorithms.find((name) => name.toUpperCase() === text.toUpperCase());
  if (found !== undefined) return found;
  throw new AwsError(
    "InvalidRequest",
    `Checksum algorithm provided is unsupported. Please try again with any of the valid types: [${checksumAlgorithms.map((name) => name.toUpperCase()).join(", ")}]`,
  );
}

function builtAlgorithm(name: string): ChecksumAlgorithm {
  const found = checksumAlgorithms.find((algorithm) => name === `${prefix}${algorithm}`);
  if (found !== undefined) return found;
  throw new AwsError("NotImplemented", `${name} is not implemented by this server`, { statusFallback: 501 });
}

/**
 * Checks that the value is base64 of the algorithm's length. A composite checksum has its number of parts after a dash.
 */
function checksumOf(name: string, value: string): AnnouncedChecksum {
  const algorithm = builtAlgorithm(name);
  const [digest = "", ...count] = value.split("-");
  const bytes = Buffer.from(digest, "base64");
  const isWhole = bytes.byteLength === digestBytes[algorithm] && bytes.toString("base64") === digest;
  if (isWhole && count.length <= 1 && count.every((text) => /^\d{1,5}$/.test(text))) return [algorithm, value];
  throw new AwsError("InvalidRequest", `Value for ${name} header is invalid.`);
}

const severalChecksums = () =>
  new AwsError("InvalidRequest", "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.");
