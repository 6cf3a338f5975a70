import { malformedXml, readXml } from "../../wire/index.ts";
import { asElementList } from "./buckets.ts";
import { sendEmpty, sendXml } from "./replies.ts";
import { readDocument } from "./request-body.ts";
import type { S3Request } from "./s3-request.ts";
import { checkTags, parseTagging, printTagging, type ObjectTag } from "./tagging.ts";

/** Maximum size of a document with ten tags, if every character of the longest keys and values is an XML entity. */
const documentBytesMax = 2 ** 16;

const tagging = "x-amz-tagging";

export async function getObjectTagging(request: S3Request): Promise<void> {
  const head = await request.store.head(request.bucket, request.key);
  sendXml(request, "Tagging", {
    TagSet: { Tag: parseTagging(head.headers[tagging] ?? "").map((tag) => ({ ...tag })) },
  });
}

/** Replaces all tags of an object. The object's bytes, ETag and date do not change. */
export async function putObjectTagging(request: S3Request): Promise<void> {
  const { store, bucket, key } = request;
  const document = await readXml(await readDocument(request, documentBytesMax), "Tagging", request.context);
  const tags = readTags(document["TagSet"]);
  checkTags(tags);
  await store.changeHeaders(bucket, key, { [tagging]: tags.length === 0 ? null : printTagging(tags) });
  sendEmpty(request, 200);
}

export async function deleteObjectTagging(request: S3Request): Promise<void> {
  await request.store.changeHeaders(request.bucket, request.key, { [tagging]: null });
  sendEmpty(request, 204);
}

/** Reads the tags of a document. The XML parser returns an empty set as text. */
function readTags(set: unknown): readonly ObjectTag[] {
  if (typeof set === "string" && set.trim() === "") return [];
  const [only, ...more] = asElementList(set);
  if (only === undefined || more.length > 0) throw malformedXml();
  return asElementList(only["Tag"]).map((tag) => {
    const { Key, Value } = tag;
    if (typeof Key !== "string" || typeof Value !== "string") throw malformedXml();
    return { Key, Value };
  });
}
