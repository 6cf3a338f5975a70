import { AwsError } from "../../../base/index.ts";
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
  readonly method: string;
  readonly level: "service" | "bucket" | "object";
  /** Query parameters that must be there; their values matter only where given as `name=value`. */
  readonly query?: readonly string[];
  readonly header?: string;
  readonly serve: (request: S3Request) => Promise<void>;
}

/** The first row that fits serves. */
const routes: readonly Route[] = [
  { operation: "ListBuckets", method: "GET", level: "service", serve: listBuckets },
  { operation: "GetBucketLocation", method: "GET", level: "bucket", query: ["location"], serve: getBucketLocation },
  {
    operation: "GetBucketVersioning",
    method: "GET",
    level: "bucket",
    query: ["versioning"],
    serve: getBucketVersioning,
  },
  { operation: "ListMultipartUploads", method: "GET", level: "bucket", query: ["uploads"], serve: listUploads },
  { operation: "ListObjectsV2", method: "GET", level: "bucket", query: ["list-type=2"], serve: listObjectsV2 },
  { operation: "DeleteObjects", method: "POST", level: "bucket", query: ["delete"], serve: deleteObjects },
  { operation: "ListObjects", method: "GET", level: "bucket", serve: listObjects },
  { operation: "CreateBucket", method: "PUT", level: "bucket", serve: createBucket },
  { operation: "HeadBucket", method: "HEAD", level: "bucket", serve: headBucket },
  { operation: "DeleteBucket", method: "DELETE", level: "bucket", serve: deleteBucket },
  {
    operation: "UploadPartCopy",
    method: "PUT",
    level: "object",
    query: ["uploadId"],
    header: "x-amz-copy-source",
    serve: copyPart,
  },
  { operation: "UploadPart", method: "PUT", level: "object", query: ["uploadId"], serve: putPart },
  { operation: "CopyObject", method: "PUT", level: "object", header: "x-amz-copy-source", serve: copyObject },
  { operation: "CreateMultipartUpload", method: "POST", level: "object", query: ["uploads"], serve: createUpload },
  { operation: "CompleteMultipartUpload", method: "POST", level: "object", query: ["uploadId"], serve: completeUpload },
  { operation: "AbortMultipartUpload", method: "DELETE", level: "object", query: ["uploadId"], serve: abortUpload },
  { operation: "ListParts", method: "GET", level: "object", query: ["uploadId"], serve: listParts },
  { operation: "GetObjectTagging", method: "GET", level: "object", query: ["tagging"], serve: getObjectTagging },
  { operation: "PutObjectTagging", method: "PUT", level: "object", query: ["tagging"], serve: putObjectTagging },
  {
    operation: "DeleteObjectTagging",
    method: "DELETE",
    level: "object",
    query: ["tagging"],
    serve: deleteObjectTagging,
  },
  { operation: "PutObject", method: "PUT", level: "object", serve: putObject },
  { operation: "GetObject", method: "GET", level: "object", serve: getObject },
  { operation: "HeadObject", method: "HEAD", level: "object", serve: getObject },
  { operation: "DeleteObject", method: "DELETE", level: "object", serve: deleteObject },
];

/** Parameters that name another operation: a row above must ask for them, or they are refused by name. */
const selectors = new Set(
  (
    "abac accelerate acl analytics annotation annotationName attributes cors delete encryption intelligent-tiering inventory " +
    "legal-hold lifecycle list-type location logging metadataAnnotationTable metadataConfiguration metadataInventoryTable " +
    "metadataJournalTable metadataTable metrics notification object-lock ownershipControls policy policyStatus publicAccessBlock " +
    "renameObject replication requestPayment restore retention select select-type session tagging torrent uploadId uploads versionId " +
    "versioning versions website"
  ).split(" "),
);

/** Parameters that say how, not what, and may be empty. */
const plainParameters = new Set(
  (
    "bucket-region continuation-token delimiter encoding-type fetch-owner id key-marker marker max-buckets max-keys max-parts max-uploads " +
    "part-number-marker partNumber prefix start-after upload-id-marker x-id"
  ).split(" "),
);

/** A name without a value is a part of a bucket or an object, also where it is one that came after this list was written. */
const isSelector = (name: string, value: string) =>
  selectors.has(name) ||
  (value === "" && name !== "" && !plainParameters.has(name) && !/^(?:response-|x-amz-)/i.test(name));

export function routeOf(request: Pick<S3Request, "method" | "bucket" | "key" | "query" | "headers">): Route {
  const { method, query, headers } = request;
  const level = request.bucket === "" ? "service" : request.key === "" ? "bucket" : "object";
  const asked = [...query].flatMap(([name, value]) =>
    isSelector(name, value) && !isNullVersion(name, query) ? [name] : [],
  );
  for (const route of routes) {
    if (route.method !== method || route.level !== level) continue;
    const wanted = (route.query ?? []).map((name) => name.split("="));
    if (!wanted.every(([name = "", value]) => query.has(name) && (value === undefined || query.get(name) === value)))
      continue;
    if (route.header !== undefined && headers[route.header] === undefined) continue;
    if (asked.every((name) => wanted.some(([known]) => known === name))) return route;
  }
  if (asked.length > 0) {
    throw new AwsError("NotImplemented", `${method} ?${asked.join("&")} is not built in this server`, {
      statusFallback: 501,
    });
  }
  throw new AwsError("MethodNotAllowed", "The specified method is not allowed against this resource.", {
    statusFallback: 405,
  });
}

/** Objects here have the one version that unversioned buckets know as "null". */
const isNullVersion = (name: string, query: ReadonlyMap<string, string>) =>
  name === "versionId" && query.get(name) === "null";
