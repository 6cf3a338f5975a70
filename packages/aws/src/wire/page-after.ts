import { pageToken, positionOfToken, type Listing } from "./page-token.ts";

export interface PageQuery {
  /** Requested maximum; at most `pageMax`. */
  readonly countMax: number | undefined;
  readonly pageMax: number;
  /** The token of the previous page; undefined for the first. */
  readonly token: string | undefined;
  readonly isDescending?: boolean;
  readonly listing: Listing;
  /** Returns the error for a token of another listing. */
  readonly refusal: (token: string) => Error;
}

/** Returns a page of items, sorted by unique positions, and the token of the next page; undefined at the end. */
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
