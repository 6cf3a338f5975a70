import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { pageAfter } from "./page-after.ts";
import { pageToken, positionOfToken, type Listing } from "./page-token.ts";

const refusal = (token: string) => new Error(`refused ${token}`);
const listing: Listing = { operation: "ListThings", input: { NameContains: "a", MaxResults: 1 } };

test("a page token returns the position to the listing that issued it, for any page length", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.nat(), (location, length) => {
      const again = { ...listing, input: { MaxResults: length, NameContains: "a", NextToken: "x" } };
      assert.equal(positionOfToken(again, pageToken(listing, location), refusal), location);
    }),
  );
});

test("tokens of another operation or another filter, and tokens that were never issued, are rejected", () => {
  const token = pageToken(listing, "place");
  const others: readonly (readonly [Listing, string])[] = [
    [{ ...listing, operation: "ListOthers" }, token],
    [{ ...listing, input: {} }, token],
    [{ ...listing, input: { NameContains: "b" } }, token],
    [listing, ""],
    [listing, "none"],
    [listing, Buffer.from("place").toString("base64")],
    [listing, `${token}AAAA`],
    [listing, token.slice(0, -2)],
  ];
  for (const [other, input] of others) assert.throws(() => positionOfToken(other, input, refusal), /^Error: refused /);
});

test("pages of any length list every item that exists throughout exactly once, while others are added and deleted", () => {
  const names = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 20 });
  fc.assert(
    fc.property(
      names,
      names,
      fc.integer({ min: 1, max: 4 }),
      fc.boolean(),
      (staying, passing, length, isDescending) => {
        const seen: string[] = [];
        let token: string | undefined;
        for (let page = 0; ; page += 1) {
          const there = new Set([...staying, ...passing.filter((_, at) => (at + page) % 3 === 0)]);
          const all = [...there].toSorted((a, b) => (a < b !== isDescending ? -1 : 1));
          const query = { countMax: length, pageMax: 100, token, isDescending, listing, refusal };
          const response = pageAfter(all, (name) => name, query);
          seen.push(...response.page);
          if ((token = response.next) === undefined) break;
        }
        assert.equal(new Set(seen).size, seen.length, "told twice");
        for (const name of staying) assert.ok(seen.includes(name), `${name} was not reported`);
      },
    ),
  );
});
