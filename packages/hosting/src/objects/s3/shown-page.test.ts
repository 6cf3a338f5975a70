import assert from "node:assert/strict";
import { test } from "node:test";
import type { ListedObject } from "../object-store.ts";
import { shownPage } from "./shown-page.ts";

const keys = ["a/1", "a/2", "b", "c/hidden", "d/hidden", "d/shown", "e", "f/1", "f/2"];
const object = (key: string): ListedObject => ({
  bucket: "bkt",
  key,
  byteLength: 1,
  etag: '"1"',
  lastModifiedMs: 0,
  checksums: {},
});
const isListed = (key: string) => !key.includes("hidden");

/**
 * Lists all pages from a simulated service that returns `flatMax` keys per page. Continues each page as the store does.
 */
function listed(flatMax: number, keysMax: number, delimiter: string): string[] {
  const seen: string[] = [];
  for (let startAfter: string | null = ""; startAfter !== null;) {
    const from: string = startAfter.endsWith("/") ? `${startAfter}\u{10ffff}` : startAfter;
    const rest = keys.filter((key) => key > from);
    const flat = rest.slice(0, flatMax);
    const nextStartAfter = rest.length > flatMax ? (flat.at(-1) ?? null) : null;
    const options = { prefix: "", delimiter, startAfter, keysMax, isListed };
    const page = shownPage({ objects: flat.map(object), commonPrefixes: [], nextStartAfter }, options);
    const items = [...page.commonPrefixes, ...page.objects.map(({ key }) => key)];
    assert.ok(items.length <= keysMax);
    seen.push(...items.toSorted());
    startAfter = page.nextStartAfter;
  }
  return seen;
}

test("pages of a filtered listing have each shown key once, and a group with its first shown key", () => {
  for (let flatMax = 1; flatMax <= keys.length; flatMax += 1) {
    for (let keysMax = 1; keysMax <= 6; keysMax += 1) {
      assert.deepEqual(listed(flatMax, keysMax, "/"), ["a/", "b", "d/", "e", "f/"], `${flatMax} ${keysMax}`);
      assert.deepEqual(listed(flatMax, keysMax, ""), keys.filter(isListed), `${flatMax} ${keysMax}`);
    }
  }
});
