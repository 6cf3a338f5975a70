import { pageToken, positionOfToken, type Listing } from "./page-token.ts";

export interface PageQuery {
  /** At most; no more than `pageMax`. */
  readonly countMax: number | undefined;
  readonly pageMax: number;
  /** As a page before gave it; undefined for the first. */
  readonly token: string | undefined;
  readonly isDescending?: boolean;
  readonly listing: Listing;
  /** The error for a token that is none of this listing's. */
  readonly refusal: (token: string) => Error;
}

/** A page of what is in the order of its places, no two of which are equal, and the token of the next; undefined where there is no more. */
export function pageAfter<Item>(
  all: readonly Item[],
  placeOf: (item: Item) => string,
  { countMax, pageMax, token, isDescending = false, listing, refusal }: PageQuery,
): { readonly page: readonly Item[]; readonly next: string | undefined } {
  const after = token === undefined ? null : positionOfToken(listing, token, refusal);
  const isAfter = (place: string) => after === null || (isDescending ? place < after : place > after);
  const rest = all.filter((item) => isAfter(placeOf(item)));
  const page = rest.slice(0, Math.min(countMax ?? pageMax, pageMax));
  const last = page.at(-1);
  const isMore = last !== undefined && rest.length > page.length;
  return { page, next: isMore ? pageToken(listing, placeOf(last)) : undefined };
}
