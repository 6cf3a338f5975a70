import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { silentLogger } from "@galatea/base";
import { MemoryDocuments } from "../records/contracts/index.ts";
import { listPage, sortValues, type ListingPage, type ListingPosition, type ListQuery } from "./listing.ts";
import { RecordKind } from "./record-kind.ts";

interface Row {
  readonly name: string;
  readonly createdMs: number;
  readonly modifiedMs: number;
  readonly state: { readonly at: string };
}

const everything: ListQuery = {
  sortBy: "created",
  isDescending: true,
  nameContains: "",
  created: { fromMs: null, untilMs: null },
  modified: { fromMs: null, untilMs: null },
  status: null,
  after: null,
  limit: 10,
};

const nextTick = () => new Promise<void>((resolve) => setImmediate(resolve));

async function kindOf(rows: readonly Row[], documents = new MemoryDocuments()): Promise<RecordKind<Row>> {
  const kind = new RecordKind<Row>("row", { documents, orders: sortValues, logger: silentLogger });
  if (rows.length > 0) await documents.write(rows.map((row) => kind.putChange(row.name.toLowerCase(), row, "any")));
  return kind;
}

/** Returns the expected listing from filtering and sorting all rows. */
function expectedOf(rows: readonly Row[], { sortBy, isDescending, ...requested }: ListQuery): readonly string[] {
  const first = (row: Row) => ({ created: row.createdMs, name: "", status: row.state.at })[sortBy];
  const within = (ms: number, { fromMs, untilMs }: ListQuery["created"]) =>
    (fromMs === null || ms >= fromMs) && (untilMs === null || ms < untilMs);
  const sorted = rows
    .filter((row) => row.name.toLowerCase().includes(requested.nameContains.toLowerCase()))
    .filter((row) => within(row.createdMs, requested.created) && within(row.modifiedMs, requested.modified))
    .filter((row) => requested.status === null || row.state.at === requested.status)
    .toSorted((a, b) => {
      const [x, y] = [first(a), first(b)];
      if (x !== y) return x < y ? -1 : 1;
      return a.name < b.name ? -1 : Number(a.name > b.name);
    });
  return (isDescending ? sorted.toReversed() : sorted).map(({ name }) => name);
}

test("property: all pages together are the matching rows in order, for any listing", async () => {
  const time = fc.integer({ min: 0, max: 12 });
  const row = fc.record({
    name: fc.stringMatching(/^[abAB][ab-]{0,3}$/),
    createdMs: time,
    modifiedMs: time,
    state: fc.record({ at: fc.constantFrom("Creating", "InService", "Failed") }),
  });
  const range = fc.record({ fromMs: fc.option(time), untilMs: fc.option(time) });
  const question = fc.record({
    sortBy: fc.constantFrom("created" as const, "name" as const, "status" as const),
    isDescending: fc.boolean(),
    nameContains: fc.constantFrom("", "", "a", "B"),
    created: range,
    modified: range,
    status: fc.option(fc.constantFrom("InService", "Failed")),
    limit: fc.integer({ min: 1, max: 4 }),
  });
  const selector = ({ name }: Row) => name.toLowerCase();
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(row, { selector, maxLength: 14 }), question, async (rows, requested) => {
      const kind = await kindOf(rows);
      const found: string[] = [];
      for (let after: ListingPosition | null = null; ;) {
        const { page, hasMore }: ListingPage<Row> = await listPage(kind, { ...requested, after }, nextTick);
        assert.ok(page.length <= requested.limit);
        found.push(...page.map(({ name }) => name));
        const last = page.at(-1);
        if (!hasMore || last === undefined) break;
        after = { name: last.name, createdMs: last.createdMs, status: last.state.at };
      }
      assert.deepEqual(found, expectedOf(rows, { ...requested, after: null }));
    }),
    { numRuns: 300 },
  );
});

/** Counts the rows that are read. */
class CountedDocuments extends MemoryDocuments {
  readCount = 0;

  override async list(query: Parameters<MemoryDocuments["list"]>[0]) {
    const page = await super.list(query);
    this.readCount += page.documents.length;
    return page;
  }
}

test("a page of ten of 2,000 rows reads eleven, also in the middle, and a time range reads only its rows", async () => {
  const rows = Array.from({ length: 2000 }, (_, index) => ({
    name: `m-${String(index).padStart(5, "0")}`,
    createdMs: 1000 + index,
    modifiedMs: 1000 + index,
    state: { at: "InService" },
  }));
  const documents = new CountedDocuments();
  const kind = await kindOf(rows, documents);
  const first = await listPage(kind, everything, nextTick);
  assert.deepEqual([first.page[0]?.name, first.page.length, first.hasMore], ["m-01999", 10, true]);
  assert.equal(documents.readCount, 11);
  documents.readCount = 0;
  const middle = await listPage(
    kind,
    { ...everything, after: { name: "m-01000", createdMs: 2000, status: "" } },
    nextTick,
  );
  assert.deepEqual([middle.page[0]?.name, middle.hasMore], ["m-00999", true]);
  assert.equal(documents.readCount, 11);
  documents.readCount = 0;
  const between = await listPage(kind, { ...everything, created: { fromMs: 1500, untilMs: 1505 } }, nextTick);
  assert.deepEqual(
    [between.page.map(({ name }) => name).at(-1), between.page.length, between.hasMore],
    ["m-00500", 5, false],
  );
  assert.equal(documents.readCount, 100);
});
