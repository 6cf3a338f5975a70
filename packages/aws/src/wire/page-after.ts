import { pageToken, positionOfToken, type Listing } from "./page-token.ts";

export interface PageQuery {
  /** The requested number of items. At most `pageMax` items are returned. */
  readonly countMax: number | undefined;
  readonly pageMax: number;
  /** The token that the previous page returned; undefined for the first page. */
  readonly token: string | undefined;
  readonly isDescending?: boolean;
  readonly listing: Listing;
  /** Returns the error for a token that another listing has issued. */
  readonly refusal: (token: string) => Error;
}

/**
 * Returns a page of items, sorted by their unique positions, and the token of the next page. The token is undefined on
 * the last page.
 */
export function pageAfter<Item>(
  all: readonly Item[],
  placeOf: (item: Item) => string,
  { countMax, pageMax, token, isDescending = false, listing, refusal }: PageQuery,
): { readonly page: readonly Item[]; readonly next: string | undefined } {
  const after = token === undefined ? null : positionOfToken(listing, token, refusal);
  const isAfter = (location: string) => after === null || (isDescending ? location < after : location > after);
  const rest = all.filter((item) => isAfter(placeOf(item)));
  const page = rest.slice(0, Math.min(countMax ?? pageMax, pageMax));
  const last = page.at(-1);
  const isMore = last !== undefined && rest.length > page.length;
  return { page, next: isMore ? pageToken(listing, placeOf(last)) : undefined };
}
