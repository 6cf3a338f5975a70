import { createHash } from "node:crypto";

/** What is listed: the operation, and what it was asked for. A token is good for the listing that gave it and for no other. */
export interface Listing {
  readonly operation: string;
  readonly input: object;
}

/** The members of inputs that say which page, and not what is listed. */
const tokenMembers = ["NextToken", "nextToken", "Marker"];
const lengthMembers = ["MaxResults", "maxResults", "MaxRecords", "MaxDatapoints", "MaxItems", "limit"];
const pageMembers = new Set([...tokenMembers, ...lengthMembers]);
const digestBytes = 9;

/** The token of the page behind this place. It holds under any length of pages, and in the next run of the platform too. */
export function pageToken(listing: Listing, place: string): string {
  return Buffer.concat([digestOf(listing, place), Buffer.from(place)]).toString("base64url");
}

/** The place that a token stands for; throws what `refusal` gives for one that this listing did not give. */
export function positionOfToken(listing: Listing, token: string, refusal: (token: string) => Error): string {
  const bytes = Buffer.from(token, "base64url");
  const place = bytes.subarray(digestBytes).toString();
  if (!digestOf(listing, place).equals(bytes.subarray(0, digestBytes))) throw refusal(token);
  return place;
}

function digestOf({ operation, input }: Listing, place: string): Buffer {
  const asked = Object.entries(input)
    .filter(([name, value]) => value !== undefined && !pageMembers.has(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  const text = JSON.stringify([operation, asked, place]);
  return createHash("sha256").update(text).digest().subarray(0, digestBytes);
}
