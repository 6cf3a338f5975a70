import { AwsError } from "@galatea/base";

const tagsMax = 10;
const keyCharsMax = 128;
const valueCharsMax = 256;

/** Letters, separators and digits of any script, and some signs. */
const allowed = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u;

export interface ObjectTag {
  readonly Key: string;
  readonly Value: string;
}

/** Parses the header `x-amz-tagging`, a query string of keys and values. Tags are stored in this format. */
export function parseTagging(header: string): readonly ObjectTag[] {
  return [...new URLSearchParams(header)].map(([Key, Value]) => ({ Key, Value }));
}

export function printTagging(tags: readonly ObjectTag[]): string {
  const query = new URLSearchParams();
  for (const { Key, Value } of tags) query.append(Key, Value);
  return query.toString();
}

/**
 * Checks the tags in a header. All violations are reported as a malformed header; a tag document has more specific
 * errors.
 */
export function checkTagging(header: string): void {
  const tags = parseTagging(header);
  const keys = new Set(tags.map(({ Key }) => Key));
  if (!isUrlEncoded(header) || keys.size < tags.length || keys.has("")) throw malformedTagging(header);
  checkTags(tags);
}

export function checkTags(tags: readonly ObjectTag[]): void {
  if (tags.length > tagsMax) throw new AwsError("BadRequest", `Object tags cannot be greater than ${tagsMax}`);
  const keys = new Set<string>();
  for (const { Key, Value } of tags) {
    if (Key === "" || Key.length > keyCharsMax || !allowed.test(Key))
      throw invalidTag("The TagKey you have provided is invalid", Key);
    if (Key.startsWith("aws:")) throw invalidTag("Your TagKey cannot be prefixed with aws:", Key);
    if (Value.length > valueCharsMax || !allowed.test(Value))
      throw invalidTag("The TagValue you have provided is invalid", Key);
    if (keys.has(Key)) throw invalidTag("Cannot provide multiple Tags with the same key", Key);
    keys.add(Key);
  }
}

/** Returns whether all escapes are valid and the text is UTF-8: `URLSearchParams` accepts anything. */
function isUrlEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

const invalidTag = (message: string, key: string) =>
  new AwsError("InvalidTag", message, { members: { TagKey: key.slice(0, keyCharsMax) } });

const argumentCharsMax = 1024;

const malformedTagging = (header: string) =>
  new AwsError(
    "InvalidArgument",
    "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name duplicates.",
    { members: { ArgumentName: "x-amz-tagging", ArgumentValue: header.slice(0, argumentCharsMax) } },
  );
