import { createHash } from "node:crypto";
import { assert, AwsError } from "@galatea/base";
import { decodeCrc32, computeDigest } from "./checksum.ts";
import { isCyclicAlgorithm, combineChecksums } from "./cyclic-checksum.ts";
import type {
  BodyExpectation,
  ChecksumAlgorithm,
  CompletedPart,
  CompleteOptions,
  PartHead,
  UploadHead,
} from "./object-store.ts";
import type { StoredPart, MultipartUpload } from "./stored-upload.ts";

/** Returns the parts that the client lists, after checks against the uploaded parts. */
export function chooseParts(
  upload: MultipartUpload,
  named: readonly CompletedPart[],
  partBytesMin: number,
): StoredPart[] {
  if (named.length === 0) throw new AwsError("MalformedXML", "You must specify at least one part");
  let before = 0;
  const chosen = named.map((part) => {
    if (part.partNumber <= before) {
      throw new AwsError(
        "InvalidPartOrder",
        "The list of parts was not in ascending order. Parts must be ordered by part number.",
      );
    }
    before = part.partNumber;
    const stored = upload.parts.get(part.partNumber);
    const same = stored !== undefined && stripQuotes(stored.etag) === stripQuotes(part.etag);
    const agree =
      same && Object.entries(part.checksums).every(([name, value]) => (stored.checksums[name] ?? value) === value);
    if (!agree) {
      throw invalidPart();
    }
    checkNamed(upload.head, part);
    return stored;
  });
  const small = chosen.slice(0, -1).find((part) => part.byteLength < partBytesMin);
  if (small !== undefined) {
    throw new AwsError("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size", {
      members: {
        ProposedSize: small.byteLength,
        MinSizeAllowed: partBytesMin,
        PartNumber: small.partNumber,
      },
    });
  }
  return chosen;
}

/** Returns the checksum of the assembled object, computed from the checksums of its parts. */
export function completedChecksums({ head }: MultipartUpload, parts: readonly StoredPart[]): Record<string, string> {
  const { checksumAlgorithm: algorithm, checksumType } = head;
  if (algorithm === null) return {};
  if (checksumType === "COMPOSITE") return { [algorithm]: compositeChecksum(algorithm, parts) };
  assert(isCyclicAlgorithm(algorithm), `${algorithm} of a whole object is not made of its parts`);
  const stretches = parts.map(({ byteLength, checksums }) => ({ byteLength, checksum: checksums[algorithm] ?? "" }));
  return { [algorithm]: combineChecksums(algorithm, stretches) };
}

/** Returns the CRC-32 of the concatenated parts, computed from the CRC-32 of each part. */
export function combinedCrc(parts: readonly StoredPart[]): number {
  return decodeCrc32(
    combineChecksums(
      "crc32",
      parts.map(({ byteLength, crc32 }) => ({ byteLength, checksum: crc32 })),
    ),
  );
}

/** Returns S3's composite checksum: the checksum of the parts' checksums, a dash and the number of parts. */
function compositeChecksum(algorithm: ChecksumAlgorithm, parts: readonly StoredPart[]): string {
  const all = Buffer.concat(parts.map((part) => Buffer.from(part.checksums[algorithm] ?? "", "base64")));
  return `${computeDigest(algorithm, all)}-${parts.length}`;
}

/** Checks, before the parts are joined, that they match the length and checksums that the client announced. */
export function checkCompleteRequest(upload: UploadHead, parts: readonly PartHead[], options: CompleteOptions): void {
  const { checksumType = upload.checksumType, expect } = options;
  if (checksumType !== upload.checksumType) {
    throw new AwsError(
      "InvalidRequest",
      `The upload was created using the ${upload.checksumType} checksum mode. The complete request must use the same checksum mode.`,
    );
  }
  const byteLength = parts.reduce((sum, part) => sum + part.byteLength, 0);
  if (expect?.byteLength === undefined || expect.byteLength === byteLength) return;
  throw new AwsError(
    "InvalidRequest",
    `The provided 'x-amz-mp-object-size' header value ${expect.byteLength} does not match what was computed: ${byteLength}`,
  );
}

/** Checks that the client lists the checksum of a part, if the object gets a composite checksum. */
function checkNamed({ checksumAlgorithm, checksumType }: UploadHead, part: CompletedPart): void {
  if (checksumAlgorithm === null || checksumType !== "COMPOSITE" || checksumAlgorithm in part.checksums) return;
  throw new AwsError(
    "InvalidRequest",
    `The upload was created using a ${checksumAlgorithm} checksum. The complete request must include the checksum for each part. It was missing for part ${part.partNumber} in the request.`,
  );
}

export function checkCompletedChecksums(
  checksums: Readonly<Record<string, string>>,
  expect: BodyExpectation | undefined,
): void {
  for (const [name, value] of Object.entries(expect?.announced() ?? {})) {
    if (checksums[name] === undefined || checksums[name] === value) continue;
    throw new AwsError("BadDigest", `The ${name.toUpperCase()} you specified did not match the calculated checksum.`);
  }
}

export function multipartEtag(parts: readonly PartHead[]): string {
  const hash = createHash("md5");
  for (const part of parts) hash.update(Buffer.from(stripQuotes(part.etag), "hex"));
  return `"${hash.digest("hex")}-${parts.length}"`;
}

export function noSuchUpload(cause?: unknown): AwsError {
  const message =
    "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.";
  return new AwsError("NoSuchUpload", message, { cause, statusFallback: 404 });
}

export function invalidPart(): AwsError {
  return new AwsError(
    "InvalidPart",
    "One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.",
  );
}

export const stripQuotes = (etag: string) => etag.replaceAll('"', "");
