import { createHash } from "node:crypto";

/** A listing: an operation and its input. A token is valid only for the listing that has issued it. */
export interface Listing {
  readonly operation: string;
  readonly input: object;
}

/** Members of an input that select the page. They are not part of the listing's identity. */
const tokenMembers = ["NextToken", "nextToken", "Marker"];
const lengthMembers = ["MaxResults", "maxResults", "MaxRecords", "MaxDatapoints", "MaxItems", "limit"];
const pageMembers = new Set([...tokenMembers, ...lengthMembers]);
const digestBytes = 9;

/**
 * Returns the token of the page after a position. The token remains valid for any page length and after a restart of
 * the platform.
 */
export function pageToken(listing: Listing, location: string): string {
  return Buffer.concat([digestOf(listing, location), Buffer.from(location)]).toString("base64url");
}

/** Returns the position in a token. Throws the error of `refusal` for a token that another listing has issued. */
export function positionOfToken(listing: Listing, token: string, refusal: (token: string) => Error): string {
  const bytes = Buffer.from(token, "base64url");
  const location = bytes.subarray(digestBytes).toString();
  if (!digestOf(listing, location).equals(bytes.subarray(0, digestBytes))) throw refusal(token);
  return location;
}

function digestOf({ operation, input }: Listing, location: string): Buffer {
  const requested = Object.entries(input)
    .filter(([name, value]) => value !== undefined && !pageMembers.has(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  const text = JSON.stringify([operation, requested, location]);
  return createHash("sha256").update(text).digest().subarray(0, digestBytes);
}
