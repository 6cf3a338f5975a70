import { AwsError, type Clock } from "@galatea/base";
import { pageAfter } from "../../wire/index.ts";
import type { IdentityStore } from "./identity-store.ts";

export interface IamOptions {
  readonly store: IdentityStore;
  readonly clock: Clock;
  readonly randomBytes: (byteCount: number) => Uint8Array;
}

const idAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/**
 * Returns a unique id in the format of IAM and STS: a four-letter prefix for the kind of resource, then 17 random
 * characters.
 */
export function createIamId(prefix: string, randomBytes: IamOptions["randomBytes"]): string {
  let id = prefix;
  for (const byte of randomBytes(17)) id += idAlphabet[byte % 32];
  return id;
}

export function checkPolicyDocument(document: string): void {
  try {
    const parsed: unknown = JSON.parse(document);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return;
  } catch (error) {
    throw new AwsError("MalformedPolicyDocument", "This policy contains invalid Json", { cause: error });
  }
  throw new AwsError("MalformedPolicyDocument", "This policy contains invalid Json");
}

/** Encodes a document for a response: IAM percent-encodes by RFC 3986, and clients decode it. */
export function encodePolicyDocument(document: string): string {
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

/** Returns a page of items, sorted by key, and the marker of the next page. */
export function iamPageOf<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  { operation, input }: { readonly operation: string; readonly input: PageInput },
): { readonly items: readonly Item[]; readonly IsTruncated: boolean; readonly Marker: string | undefined } {
  const sorted = items.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0));
  const { Marker: token, MaxItems: countMax = pageDefault } = input;
  const requested = { countMax, pageMax, token, listing: { operation, input }, refusal: invalidMarker };
  const { page, next } = pageAfter(sorted, keyOf, requested);
  return { items: page, IsTruncated: next !== undefined, Marker: next };
}

/** Returns the error for a marker that another listing has issued. */
export const invalidMarker = (): AwsError => new AwsError("ValidationError", "Invalid Marker.");

export function iamQuotaExceeded(name: string, max: number): AwsError {
  return new AwsError("LimitExceeded", `Cannot exceed quota for ${name}: ${max}`);
}
