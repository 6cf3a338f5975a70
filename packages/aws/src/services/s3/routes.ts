import { AwsError, assert } from "@galatea/base";
import { anyResource, type RawOperationRow } from "../../wire/index.ts";
import {
  createBucket,
  deleteBucket,
  getBucketLocation,
  getBucketVersioning,
  headBucket,
  listBuckets,
  listObjects,
  listObjectsV2,
} from "./buckets.ts";
import { copyObject } from "./copies.ts";
import { deleteObject, deleteObjects } from "./deletes.ts";
import { deleteObjectTagging, getObjectTagging, putObjectTagging } from "./object-tags.ts";
import { getObject, putObject } from "./objects.ts";
import type { S3Request } from "./s3-request.ts";
import { abortUpload, completeUpload, copyPart, createUpload, listParts, listUploads, putPart } from "./uploads.ts";

interface Route {
  readonly operation: string;
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  readonly level: "service" | "bucket" | "object";
  /** Required query parameters. A parameter written as `name=value` must have that value. */
  readonly query?: readonly string[];
  readonly header?: string;
  readonly handle: (request: S3Request) => Promise<void>;
}

/** The routes in order of priority: the first one that matches a request is used. */
const routes: readonly Route[] = [
  { operation: "ListBuckets", method: "GET", level: "service", handle: listBuckets },
  { operation: "GetBucketLocation", method: "GET", level: "bucket", query: ["location"], handle: getBucketLocation },
  {
    operation: "GetBucketVersioning",
    method: "GET",
    level: "bucket",
    query: ["versioning"],
    handle: getBucketVersioning,
  },
  { operation: "ListMultipartUploads", method: "GET", level: "bucket", query: ["uploads"], handle: listUploads },
  { operation: "ListObjectsV2", method: "GET", level: "bucket", query: ["list-type=2"], handle: listObjectsV2 },
  { operation: "DeleteObjects", method: "POST", level: "bucket", query: ["delete"], handle: deleteObjects },
  { operation: "ListObjects", method: "GET", level: "bucket", handle: listObjects },
  { operation: "CreateBucket", method: "PUT", level: "bucket", handle: createBucket },
  { operation: "HeadBucket", method: "HEAD", level: "bucket", handle: headBucket },
  { operation: "DeleteBucket", method: "DELETE", level: "bucket", handle: deleteBucket },
  {
    operation: "UploadPartCopy",
    method: "PUT",
    level: "object",
    query: ["uploadId"],
    header: "x-amz-copy-source",
    handle: copyPart,
  },
  { operation: "UploadPart", method: "PUT", level: "object", query: ["uploadId"], handle: putPart },
  { operation: "CopyObject", method: "PUT", level: "object", header: "x-amz-copy-source", handle: copyObject },
  { operation: "CreateMultipartUpload", method: "POST", level: "object", query: ["uploads"], handle: createUpload },
  {
    operation: "CompleteMultipartUpload",
    method: "POST",
    level: "object",
    query: ["uploadId"],
    handle: completeUpload,
  },
  { operation: "AbortMultipartUpload", method: "DELETE", level: "object", query: ["uploadId"], handle: abortUpload },
  { operation: "ListParts", method: "GET", level: "object", query: ["uploadId"], handle: listParts },
  { operation: "GetObjectTagging", method: "GET", level: "object", query: ["tagging"], handle: getObjectTagging },
  { operation: "PutObjectTagging", method: "PUT", level: "object", query: ["tagging"], handle: putObjectTagging },
  {
    operation: "DeleteObjectTagging",
    method: "DELETE",
    level: "object",
    query: ["tagging"],
    handle: deleteObjectTagging,
  },
  { operation: "PutObject", method: "PUT", level: "object", handle: putObject },
  { operation: "GetObject", method: "GET", level: "object", handle: getObject },
  { operation: "HeadObject", method: "HEAD", level: "object", handle: getObject },
  { operation: "DeleteObject", method: "DELETE", level: "object", handle: deleteObject },
];

/**
 * The rows of all operations, with an IAM action for each. IAM itself has fewer actions: it checks a copy as GetObject
 * and PutObject, and a listing as ListBucket.
 */
export const s3Operations: Readonly<Record<string, RawOperationRow<S3Request>>> = Object.fromEntries(
  routes.map(({ operation, handle }) => [operation, { action: `s3:${operation}`, resource: resourceOf, handle }]),
);

function resourceOf({ bucket, key }: S3Request): string {
  if (bucket === "") return anyResource();
  return key === "" ? `arn:aws:s3:::${bucket}` : `arn:aws:s3:::${bucket}/${key}`;
}

/**
 * Parameters that select an operation. A request with one that its route does not require is rejected with an error
 * that names the parameter.
 */
const selectors = new Set(
  (
    "abac accelerate acl analytics annotation annotationName attributes cors delete encryption intelligent-tiering inventory " +
    "legal-hold lifecycle list-type location logging metadataAnnotationTable metadataConfiguration metadataInventoryTable " +
    "metadataJournalTable metadataTable metrics notification object-lock ownershipControls policy policyStatus publicAccessBlock " +
    "renameObject replication requestPayment restore retention select select-type session tagging torrent uploadId uploads versionId " +
    "versioning versions website"
  ).split(" "),
);

/** Parameters that do not select an operation, and may be empty. */
const plainParameters = new Set(
  (
    "bucket-region continuation-token delimiter encoding-type fetch-owner id key-marker marker max-buckets max-keys max-parts max-uploads " +
    "part-number-marker partNumber prefix start-after upload-id-marker x-id"
  ).split(" "),
);

/**
 * Returns whether a parameter selects an operation. An unknown parameter without a value does, because S3 may have
 * added an operation that this list does not contain.
 */
const isSelector = (name: string, value: string) =>
  selectors.has(name) ||
  (value === "" && name !== "" && !plainParameters.has(name) && !/^(?:response-|x-amz-)/i.test(name));

/** Returns the operation of a request. Throws S3's own error if there is none. */
export function findS3Operation(request: S3Request): RawOperationRow<S3Request> {
  const row = s3Operations[routeOf(request).operation];
  assert(row !== undefined, "every route has an operation");
  return row;
}

function routeOf(request: S3Request): Route {
  const { method, query, headers } = request;
  const level = request.bucket === "" ? "service" : request.key === "" ? "bucket" : "object";
  const requested = [...query].flatMap(([name, value]) =>
    isSelector(name, value) && !isNullVersion(name, query) ? [name] : [],
  );
  for (const route of routes) {
    if (route.method !== method || route.level !== level) continue;
    const desired = (route.query ?? []).map((name) => name.split("="));
    if (!desired.every(([name = "", value]) => query.has(name) && (value === undefined || query.get(name) === value)))
      continue;
    if (route.header !== undefined && headers[route.header] === undefined) continue;
    if (requested.every((name) => desired.some(([known]) => known === name))) return route;
  }
  if (requested.length > 0) {
    throw new AwsError("NotImplemented", `${method} ?${requested.join("&")} is not implemented by this server`, {
      statusFallback: 501,
    });
  }
  throw new AwsError("MethodNotAllowed", "The specified method is not allowed against this resource.", {
    statusFallback: 405,
  });
}

/**
 * Returns whether a parameter requests the version "null", which is the only version of an object in an unversioned
 * bucket.
 */
const isNullVersion = (name: string, query: ReadonlyMap<string, string>) =>
  name === "versionId" && query.get(name) === "null";
