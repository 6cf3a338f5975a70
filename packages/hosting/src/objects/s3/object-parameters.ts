import type { HeadObjectCommandOutput, S3Client } from "@aws-sdk/client-s3";
import { checksumAlgorithms, type ObjectHead, type PutOptions } from "../object-store.ts";

/** Headers of an object, and the SDK's parameter names for them. */
const headerMembers = {
  "cache-control": "CacheControl",
  "content-disposition": "ContentDisposition",
  "content-encoding": "ContentEncoding",
  "content-language": "ContentLanguage",
  expires: "ExpiresString",
  "x-amz-website-redirect-location": "WebsiteRedirectLocation",
} as const;

const checksumMembers = Object.fromEntries(
  checksumAlgorithms.map((name) => [name, `Checksum${name.toUpperCase()}`]),
) as Record<(typeof checksumAlgorithms)[number], "ChecksumCRC32">;

interface Middlewares {
  readonly middlewareStack: Pick<S3Client["middlewareStack"], "add">;
}

/** Adds headers to a command's request before it is signed. */
export function withHeaders<Command extends object>(
  command: Command,
  headers: Readonly<Record<string, string | undefined>>,
): Command {
  const input = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
  (command as unknown as Middlewares).middlewareStack.add(
    (next) => (args) => {
      const request = args.request as { headers: Record<string, string> };
      for (const [name, value] of input) request.headers[name] = value;
      return next(args);
    },
    { step: "build", name: "objectHeaders" },
  );
  return command;
}

/** Returns the headers of a new object. Values that are not ASCII are encoded as in RFC 2047. */
export function describingHeaders({ contentType, headers = {} }: Pick<PutOptions, "contentType" | "headers">) {
  const encoded = Object.entries(headers).map(([name, value]) => [
    name,
    /[\x80-\xff]/.test(value) ? `=?UTF-8?B?${Buffer.from(value).toString("base64")}?=` : value,
  ]);
  return { "content-type": contentType ?? "binary/octet-stream", ...Object.fromEntries(encoded) } as Record<
    string,
    string
  >;
}

type DescribingOutput = Omit<HeadObjectCommandOutput, "$metadata">;

/** Converts a response to an object's head. `tagging`: the value of the object's `x-amz-tagging`. */
export function objectHead(
  { bucket, key, byteLength }: Pick<ObjectHead, "bucket" | "key" | "byteLength">,
  output: DescribingOutput,
  tagging: string | null,
): ObjectHead {
  const headers: Record<string, string> = {};
  for (const [name, member] of Object.entries(headerMembers)) {
    const value = output[member];
    if (value !== undefined && value !== "") headers[name] = value;
  }
  for (const [name, value] of Object.entries(output.Metadata ?? {})) headers[`x-amz-meta-${name}`] = value;
  if (tagging !== null) headers["x-amz-tagging"] = tagging;
  const checksums = checksumsOf(output);
  return {
    bucket,
    key,
    byteLength,
    etag: output.ETag ?? "",
    lastModifiedMs: output.LastModified?.getTime() ?? 0,
    contentType: output.ContentType ?? "binary/octet-stream",
    headers,
    checksums,
    // `checksumType` is omitted for FULL_OBJECT, the default.
    ...(output.ChecksumType === "COMPOSITE" || (output.ETag ?? "").includes("-")
      ? { checksumType: output.ChecksumType ?? "COMPOSITE" }
      : {}),
  };
}

/** Returns the base64 checksums in a response or an item of a listing. */
export function checksumsOf(output: Partial<Record<"ChecksumCRC32", string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(checksumMembers).flatMap(([name, member]) => {
      const value = output[member];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Returns the SDK parameters for the given checksums. */
export function checksumParameters(checksums: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(checksumMembers).flatMap(([name, member]) => {
      const value = checksums[name];
      return value === undefined ? [] : [[member, value]];
    }),
  );
}

/** Decodes a key of a listing. Services encode keys, because XML cannot contain every character. */
export function decodeListedKey(text: string | undefined, encodingType: string | undefined): string {
  if (encodingType === undefined) return text ?? "";
  return decodeURIComponent((text ?? "").replaceAll("+", "%20"));
}
