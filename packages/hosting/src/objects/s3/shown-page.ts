import type { ListedObject, ListOptions, ListPage } from "../object-store.ts";

/** Filters a page of ungrouped keys by `isListed`, and groups the listed keys by the delimiter. */
export function shownPage(
  page: ListPage,
  { prefix, delimiter, keysMax, isListed }: ListOptions & Required<Pick<ListOptions, "isListed">>,
): ListPage {
  const objects: ListedObject[] = [];
  const commonPrefixes: string[] = [];
  let last: string | null = null;
  for (const object of page.objects) {
    const { key } = object;
    if (commonPrefixes.at(-1) === last && last !== null && key.startsWith(last)) continue;
    if (!isListed(key)) continue;
    if (objects.length + commonPrefixes.length === keysMax) {
      return { objects, commonPrefixes, nextStartAfter: last };
    }
    const end = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
    last = end === -1 ? key : key.slice(0, end + delimiter.length);
    if (end === -1) objects.push(object);
    else commonPrefixes.push(last);
  }
  // If the next page started within a group that this page contains, it would contain the group again.
  const { nextStartAfter } = page;
  const group = commonPrefixes.at(-1);
  const isOfGroup = nextStartAfter !== null && group !== undefined && nextStartAfter.startsWith(group);
  return { objects, commonPrefixes, nextStartAfter: isOfGroup ? group : nextStartAfter };
}
