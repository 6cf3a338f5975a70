import { AwsError } from "../../../base/index.ts";
import {
  createBucket,
  deleteBucket,
  deleteObjects,
  getBucketLocation,
  getBucketVersioning,
  headBucket,
  listBuckets,
  listObjects,
  listObjectsV2,
} from "./buckets.ts";
import { copyObject, deleteObject, getObject, getObjectTagging, putObject } from "./objects.ts";
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
  { operation: "PutObject", method: "PUT", level: "object", serve: putObject },
  { operation: "GetObject", method: "GET", level: "object", serve: getObject },
  { operation: "HeadObject", method: "HEAD", level: "object", serve: getObject },
  { operation: "DeleteObject", method: "DELETE", level: "object", serve: deleteObject },
];

/** Parameters that name another operation: a row above must ask for them, or they are refused by name. */
const selectors = new Set(
  (
    "accelerate acl analytics attributes cors delete encryption intelligent-tiering inventory legal-hold lifecycle list-type location logging " +
    "metadataConfiguration metadataTable metrics notification object-lock ownershipControls policy policyStatus publicAccessBlock " +
    "renameObject replication requestPayment restore retention select session tagging torrent uploadId uploads versionId versioning " +
    "versions website"
  ).split(" "),
);

export function routeOf(request: Pick<S3Request, "method" | "bucket" | "key" | "query" | "headers">): Route {
  const { method, query, headers } = request;
  const level = request.bucket === "" ? "service" : request.key === "" ? "bucket" : "object";
  const asked = [...query.keys()].filter((name) => selectors.has(name) && !isNullVersion(name, query));
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
