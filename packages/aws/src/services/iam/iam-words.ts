import { AwsError, type Clock } from "@galatea/base";
import { pageAfter } from "../../wire/index.ts";
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

const pageDefault = 100;
const pageMax = 1000;

interface PageInput {
  readonly Marker?: string;
  readonly MaxItems?: number;
}

/** A page in the order of keys, and the marker of the next one. */
export function pageOf<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  { operation, input }: { readonly operation: string; readonly input: PageInput },
): { readonly items: readonly Item[]; readonly IsTruncated: boolean; readonly Marker: string | undefined } {
  const sorted = items.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0));
  const { Marker: token, MaxItems: countMax = pageDefault } = input;
  const asked = { countMax, pageMax, token, listing: { operation, input }, refusal: invalidMarker };
  const { page, next } = pageAfter(sorted, keyOf, asked);
  return { items: page, IsTruncated: next !== undefined, Marker: next };
}

/** The error for a marker that the listing did not give. */
export const invalidMarker = (): AwsError => new AwsError("ValidationError", "Invalid Marker.");

export function quota(name: string, max: number): AwsError {
  return new AwsError("LimitExceeded", `Cannot exceed quota for ${name}: ${max}`);
}
