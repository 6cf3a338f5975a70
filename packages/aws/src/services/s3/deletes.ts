import { AwsError } from "@galatea/base";
import type { DeleteCondition } from "@galatea/hosting/objects";
import { malformedXml, readXml } from "../../wire/index.ts";
import { asElementList } from "./buckets.ts";
import { quotedEtag } from "./conditions.ts";
import { sendEmpty, sendXml } from "./replies.ts";
import { readDocument } from "./request-body.ts";
import type { S3Request } from "./s3-request.ts";

const deletesMax = 1000;
const documentBytesMax = 2 * 2 ** 20;

/** Conditions that S3 does not define for a deletion. */
const refusedConditions = ["if-none-match", "if-modified-since", "if-unmodified-since"];

/** Conditions on the object to delete. A condition that is undefined is not checked. */
interface WrittenCondition {
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  readonly byteLength: string | undefined;
}

/** An object that a DeleteObjects request names. */
interface NamedObject extends WrittenCondition {
  readonly key: string;
  readonly versionId: string | undefined;
}

export async function deleteObject(request: S3Request): Promise<void> {
  const { store, bucket, key, headers } = request;
  const refused = refusedConditions.find((name) => headers[name] !== undefined);
  if (refused !== undefined) {
    throw new AwsError("NotImplemented", `${refused} on a deletion is not implemented`, { statusFallback: 501 });
  }
  const condition = parseCondition({
    etag: headers["if-match"],
    lastModified: headers["x-amz-if-match-last-modified-time"],
    byteLength: headers["x-amz-if-match-size"],
  });
  await store.delete(bucket, key, condition);
  sendEmpty(request, 204);
}

function parseCondition({ etag, lastModified, byteLength }: WrittenCondition): DeleteCondition {
  const lastModifiedMs = lastModified === undefined ? 0 : Date.parse(lastModified);
  if (Number.isNaN(lastModifiedMs) || !/^\d{1,15}$/.test(byteLength ?? "0")) {
    throw new AwsError("InvalidArgument", "The condition of the deletion has an invalid date or size");
  }
  return {
    ...(etag === undefined ? {} : { ifMatch: quotedEtag(etag) }),
    ...(lastModified === undefined ? {} : { lastModifiedMs }),
    ...(byteLength === undefined ? {} : { byteLength: Number(byteLength) }),
  };
}

export async function deleteObjects(request: S3Request): Promise<void> {
  await request.store.headBucket(request.bucket);
  const document = await readXml(await readDocument(request, documentBytesMax), "Delete", request.context, "Object");
  const named = asElementList(document["Object"]).map(namedObject);
  if (named.length === 0 || named.length > deletesMax) throw malformedXml();
  const quiet = String(document["Quiet"]).trim() === "true";
  const deleted: Record<string, string>[] = [];
  const errors: Record<string, string>[] = [];
  for (const object of named) {
    const { key: Key, versionId } = object;
    const name = versionId === undefined ? { Key } : { Key, VersionId: versionId };
    const refusal = await deleteNamed(request, object);
    if (refusal !== null) errors.push({ ...name, Code: refusal.code, Message: refusal.message });
    else if (!quiet) deleted.push(name);
  }
  sendXml(request, "DeleteResult", { Deleted: deleted, Error: errors });
}

/** Deletes one of many objects; returns its error, or null. An error of the bucket fails the whole request. */
async function deleteNamed({ store, bucket }: S3Request, object: NamedObject): Promise<AwsError | null> {
  if (object.versionId !== undefined && object.versionId !== "null") {
    return new AwsError("NoSuchVersion", "The specified version does not exist.", { statusFallback: 404 });
  }
  try {
    await store.delete(bucket, object.key, parseCondition(object));
    return null;
  } catch (error) {
    if (!(error instanceof AwsError) || error.code === "NoSuchBucket") throw error;
    return error;
  }
}

function namedObject(entry: Record<string, unknown>): NamedObject {
  const text = (name: string) => {
    const value = entry[name];
    if (value !== undefined && typeof value !== "string") throw malformedXml();
    return value === "" ? undefined : value;
  };
  const key = text("Key");
  if (key === undefined) throw malformedXml();
  return {
    key,
    versionId: text("VersionId"),
    etag: text("ETag"),
    lastModified: text("LastModifiedTime"),
    byteLength: text("Size"),
  };
}
