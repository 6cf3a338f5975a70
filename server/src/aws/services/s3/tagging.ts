import { AwsError } from "../../../base/index.ts";

const tagsMax = 10;
const keyCharsMax = 128;
const valueCharsMax = 256;

/** The header's form: a query of keys and values. */
export function parseTagging(header: string): readonly { readonly Key: string; readonly Value: string }[] {
  return [...new URLSearchParams(header)].map(([Key, Value]) => ({ Key, Value }));
}

export function checkTagging(header: string): void {
  const tags = parseTagging(header);
  if (tags.length > tagsMax) throw new AwsError("BadRequest", `Object tags cannot be greater than ${tagsMax}`);
  const keys = new Set<string>();
  for (const { Key, Value } of tags) {
    if (Key === "" || Key.length > keyCharsMax) throw invalidTag("The TagKey you have provided is invalid", Key);
    if (Value.length > valueCharsMax) throw invalidTag("The TagValue you have provided is invalid", Key);
    if (keys.has(Key)) throw invalidTag("Cannot provide multiple Tags with the same key", Key);
    keys.add(Key);
  }
}

const invalidTag = (message: string, key: string) =>
  new AwsError("InvalidTag", message, { members: { TagKey: key.slice(0, keyCharsMax) } });
