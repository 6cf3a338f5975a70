import { AwsError, type Clock } from "../../../base/index.ts";
import type { IdentityStore } from "./identity-store.ts";

export interface IamOptions {
  readonly store: IdentityStore;
  readonly clock: Clock;
  readonly randomBytes: (byteCount: number) => Uint8Array;
}

const idAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** A unique id as IAM and STS make them: a four-letter prefix that says what it is, and 17 characters of chance. */
export function newId(prefix: string, randomBytes: IamOptions["randomBytes"]): string {
  let id = prefix;
  for (const byte of randomBytes(17)) id += idAlphabet[byte % 32];
  return id;
}

export function checkDocument(document: string): void {
  try {
    const parsed: unknown = JSON.parse(document);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return;
  } catch (error) {
    throw new AwsError("MalformedPolicyDocument", "This policy contains invalid Json", { cause: error });
  }
  throw new AwsError("MalformedPolicyDocument", "This policy contains invalid Json");
}

/** IAM answers documents percent-encoded as in RFC 3986; clients decode them. */
export function encodeDocument(document: string): string {
  return encodeURIComponent(document).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** A page in the order of names; its marker is the last name of the page before. */
export function pageOf<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  { Marker, MaxItems = 100 }: { readonly Marker?: string; readonly MaxItems?: number },
): { readonly items: readonly Item[]; readonly IsTruncated: boolean; readonly Marker: string | undefined } {
  const sorted = items.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0));
  const rest = Marker === undefined ? sorted : sorted.filter((item) => keyOf(item) > Marker);
  const page = rest.slice(0, MaxItems);
  const last = page.at(-1);
  const isTruncated = last !== undefined && rest.length > page.length;
  return { items: page, IsTruncated: isTruncated, Marker: isTruncated ? keyOf(last) : undefined };
}

export function quota(name: string, max: number): AwsError {
  return new AwsError("LimitExceeded", `Cannot exceed quota for ${name}: ${max}`);
}
