import { AwsError } from "@galatea/base";
import type { S3Request } from "./s3-request.ts";

interface RefusedHeader {
  /** The complete name, or a prefix if it ends with a dash. */
  readonly name: string;
  /** The value that requests the default behaviour and is therefore accepted. */
  readonly harmless?: string;
  readonly error: (name: string) => AwsError;
}

const notBuilt = (name: string) =>
  new AwsError("NotImplemented", `${name} is not implemented by this server`, { statusFallback: 501 });
const notLocked = () => new AwsError("InvalidRequest", "Bucket is missing Object Lock Configuration");

/**
 * Headers that would store or encrypt objects differently. They are rejected, because ignoring them would mislead the
 * caller.
 */
const refusedHeaders: readonly RefusedHeader[] = [
  { name: "x-amz-server-side-encryption-customer-", error: notBuilt },
  { name: "x-amz-copy-source-server-side-encryption-customer-", error: notBuilt },
  // This header names a KMS key of the caller. A request for encryption without a key is accepted.
  { name: "x-amz-server-side-encryption-aws-kms-key-id", error: notBuilt },
  { name: "x-amz-server-side-encryption-context", error: notBuilt },
  { name: "x-amz-server-side-encryption-bucket-key-enabled", harmless: "false", error: notBuilt },
  { name: "x-amz-object-lock-", error: notLocked },
  { name: "x-amz-bucket-object-lock-enabled", harmless: "false", error: notBuilt },
  { name: "x-amz-write-offset-bytes", error: notBuilt },
];

const listed = (text: string) => new Set(text.split(" "));

/** Headers with a few allowed values, and S3's error for any other value. */
const closedHeaders: readonly {
  readonly name: string;
  readonly values: ReadonlySet<string>;
  readonly code: string;
  readonly message: string;
}[] = [
  {
    name: "x-amz-server-side-encryption",
    values: listed("AES256 aws:kms"),
    code: "InvalidArgument",
    message: "The encryption method specified is not supported",
  },
  {
    name: "x-amz-storage-class",
    values: listed(
      "STANDARD REDUCED_REDUNDANCY STANDARD_IA ONEZONE_IA INTELLIGENT_TIERING GLACIER DEEP_ARCHIVE OUTPOSTS GLACIER_IR SNOW " +
        "EXPRESS_ONEZONE FSX_OPENZFS FSX_ONTAP AWS_BACKUP_WARM AWS_BACKUP_LOW_COST_WARM",
    ),
    code: "InvalidStorageClass",
    message: "The storage class you specified is not valid",
  },
  {
    name: "x-amz-metadata-directive",
    values: listed("COPY REPLACE"),
    code: "InvalidArgument",
    message: "Unknown metadata directive.",
  },
  {
    name: "x-amz-tagging-directive",
    values: listed("COPY REPLACE"),
    code: "InvalidArgument",
    message: "Unknown tagging directive.",
  },
];

/** Throws for unsupported headers. Called before any other check of a request. */
export function refuseHeaders(headers: S3Request["headers"], accountId: string): void {
  for (const name of ["x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner"]) {
    const owner = headers[name];
    if (owner !== undefined && owner !== accountId) {
      throw new AwsError("AccessDenied", "Access Denied", { statusFallback: 403 });
    }
  }
  for (const [input, value = ""] of Object.entries(headers)) {
    const row = refusedHeaders.find(({ name }) => input === name || (name.endsWith("-") && input.startsWith(name)));
    if (row !== undefined && row.harmless !== value.toLowerCase()) throw row.error(input);
  }
  for (const { name, values, code, message } of closedHeaders) {
    const value = headers[name];
    if (value === undefined || values.has(value)) continue;
    throw new AwsError(code, message, { members: { ArgumentName: name, ArgumentValue: value.slice(0, 64) } });
  }
}
