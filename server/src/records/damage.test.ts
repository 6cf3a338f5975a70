/** A data directory whose files a disk has changed: the records open, and nothing is lost that is not told. */
import assert from "node:assert/strict";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DatabaseSync } from "node:sqlite";
import * as fc from "fast-check";
import { createLogger } from "../base/index.ts";
import { openRecords, recordsDefaults, type Migration, type Records } from "./index.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-damage-"));
after(() => rmSync(root, { recursive: true, force: true }));

const migrations: readonly Migration[] = [
  { id: "test-1", sql: "CREATE TABLE thing (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID" },
];
const count = 31;
const nameOf = (index: number) => `model-${String(index).padStart(2, "0")}`;
const bodyOf = (index: number) => JSON.stringify({ index, text: "x".repeat(100 + 37 * index) });
const expected = Array.from({ length: count }, (_, index) => ({ name: nameOf(index), body: bodyOf(index) }));

interface Opened {
  readonly records: Records;
  readonly told: string[];
}

async function open(directory: string, options: Partial<typeof recordsDefaults> = {}): Promise<Opened> {
  const told: string[] = [];
  const logger = createLogger((_, message, fields) => told.push(`${message} ${JSON.stringify(fields)}`));
  const path = join(directory, "records.db");
  return { told, records: await openRecords({ path, migrations, ...recordsDefaults, ...options, logger }) };
}

const rowsOf = async (records: Records) =>
  (await records.rows("SELECT name, body FROM thing ORDER BY name")).map(({ name, body }) => ({ name, body }));

/** What a killed platform leaves: everything in the write-ahead log; and what one leaves that was stopped. */
const killed = join(root, "killed");
const stopped = join(root, "stopped");

before(async () => {
  for (const options of [{}, { keepsJournal: false }]) {
    const suffix = "keepsJournal" in options ? "-single" : "";
    const live = join(root, `live${suffix}`);
    mkdirSync(live);
    const { records } = await open(live, options as Partial<typeof recordsDefaults>);
    for (let index = 0; index < count; index += 1) {
      await records.write([{ sql: "INSERT INTO thing VALUES (?, ?)", values: [nameOf(index), bodyOf(index)] }]);
    }
    cpSync(live, killed + suffix, { recursive: true });
    await records[Symbol.asyncDispose]();
    cpSync(live, stopped + suffix, { recursive: true });
  }
});

let copies = 0;
function copyOf(directory: string): string {
  const copy = join(root, `copy-${(copies += 1)}`);
  cpSync(directory, copy, { recursive: true });
  return copy;
}

function flip(path: string, bit: number): void {
  const bytes = readFileSync(path);
  if (bytes.length === 0) return;
  const at = bit % (bytes.length * 8);
  bytes[at >>> 3]! ^= 1 << (at & 7);
  writeFileSync(path, bytes);
}

async function assertWhole(directory: string, what: string): Promise<readonly string[]> {
  const { records, told } = await open(directory);
  try {
    assert.deepEqual(await rowsOf(records), expected, `${what}; told: ${told.join("\n")}`);
    await records.write([{ sql: "INSERT INTO thing VALUES ('z', '')", values: [] }]);
  } finally {
    await records[Symbol.asyncDispose]();
  }
  // What was repaired is sound: the next opening has nothing to tell.
  const again = await open(directory);
  assert.equal((await rowsOf(again.records)).length, count + 1, what);
  assert.deepEqual(again.told, [], `${what}; again`);
  await again.records[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
  return told;
}

test("one flipped bit in the write-ahead log loses nothing, and is told by name", async () => {
  const directory = copyOf(killed);
  // The thirteenth commit from the end.
  const path = join(directory, "records.db-wal");
  flip(path, Math.floor(readFileSync(path).length * 0.55) * 8);
  const told = await assertWhole(directory, "the log");
  assert.equal(told.length, 1);
  assert.match(
    told[0] ?? "",
    /damaged; it is kept aside and its records are restored .*commits are missing.*thing model-30/,
  );
});

for (const [state, directory] of [
  ["killed", () => killed],
  ["stopped", () => stopped],
] as const) {
  test(`any flipped bit in any file of records that were ${state} is survived without a loss`, async () => {
    const files = readdirSync(directory()).filter((name) => !name.endsWith(".former"));
    assert.ok(files.length >= 3, files.join(", "));
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...files), fc.nat({ max: 2 ** 31 - 1 }), async (file, bit) => {
        const copy = copyOf(directory());
        flip(join(copy, file), bit);
        await assertWhole(copy, `${file} bit ${bit}`);
      }),
      { numRuns: 25, seed: 20_261_122 },
    );
  });

  test(`a file of records that were ${state} that is empty, garbage, cut short or gone is survived without a loss`, async () => {
    for (const file of readdirSync(directory())) {
      for (const [how, damage] of Object.entries({
        empty: (path: string) => truncateSync(path, 0),
        garbage: (path: string) => writeFileSync(path, Buffer.alloc(5000, 0x5a)),
        short: (path: string) => truncateSync(path, Math.floor(readFileSync(path).length / 2)),
        gone: (path: string) => rmSync(path),
      })) {
        const copy = copyOf(directory());
        damage(join(copy, file));
        await assertWhole(copy, `${file} ${how}`);
      }
    }
  });
}

test("what is damaged is kept beside the records as it was", async () => {
  const directory = copyOf(stopped);
  const path = join(directory, "records.db");
  writeFileSync(path, "garbage");
  const { records } = await open(directory);
  await records[Symbol.asyncDispose]();
  assert.equal(readFileSync(`${path}.damaged-1`, "utf8"), "garbage");
});

test("with both copies damaged, what either has is there, and the rest is told", async () => {
  const directory = copyOf(stopped);
  const journal = join(directory, "records.db.journal");
  const lines = readFileSync(journal, "utf8").split("\n");
  const damaged = lines.map((line, index) => (index === 5 ? line.replaceAll("x", "y") : line));
  writeFileSync(journal, damaged.join("\n"));
  writeFileSync(join(directory, "records.db"), "garbage");
  const { records, told } = await open(directory);
  assert.equal((await rowsOf(records)).length, count - 1);
  assert.equal(told.length, 2);
  assert.match(told.join("\n"), /second copy .*"damagedLines":"6"/);
  await records[Symbol.asyncDispose]();
});

test("without a second copy, lost commits are counted and the damaged log is kept", async () => {
  const directory = copyOf(`${killed}-single`);
  const path = join(directory, "records.db-wal");
  flip(path, Math.floor(readFileSync(path).length * 0.55) * 8);
  const { records, told } = await open(directory, { keepsJournal: false } as never);
  const left = (await rowsOf(records)).length;
  assert.ok(left < count && left > 0, String(left));
  assert.equal(told.length, 1);
  assert.match(told[0] ?? "", new RegExp(`last writes to a database are lost.*"lostCommits":${count - left}`));
  assert.ok(readdirSync(directory).includes("records.db-wal.damaged-1"));
  await records[Symbol.asyncDispose]();
});

test("without a second copy, any flipped bit leaves a database that opens and can be written", async () => {
  const files = readdirSync(`${stopped}-single`);
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...files), fc.nat({ max: 2 ** 31 - 1 }), async (file, bit) => {
      const copy = copyOf(`${stopped}-single`);
      flip(join(copy, file), bit);
      const { records, told } = await open(copy, { keepsJournal: false } as never);
      await records.write([{ sql: "INSERT INTO thing VALUES ('z', '')", values: [] }]);
      assert.ok((await rowsOf(records)).length === count + 1 || told.length > 0, `${file} bit ${bit}: a silent loss`);
      await records[Symbol.asyncDispose]();
      rmSync(copy, { recursive: true });
    }),
    { numRuns: 25, seed: 20_261_122 },
  );
});

test("the second copy is begun anew when it has grown, and one former copy is kept", async () => {
  const directory = join(root, "grown");
  mkdirSync(directory);
  const { records } = await open(directory);
  const body = "y".repeat(200_000);
  for (let index = 0; index < 60; index += 1) {
    await records.write([{ sql: "INSERT OR REPLACE INTO thing VALUES ('same', ?)", values: [`${index}${body}`] }]);
  }
  assert.ok(readFileSync(join(directory, "records.db.journal")).length < 6e6);
  assert.deepEqual(
    readdirSync(directory).filter((name) => name.includes("journal")),
    ["records.db.journal", "records.db.journal.former"],
  );
  await records[Symbol.asyncDispose]();
  rmSync(join(directory, "records.db"));
  const again = await open(directory);
  assert.deepEqual(await rowsOf(again.records), [{ name: "same", body: `59${body}` }]);
  await again.records[Symbol.asyncDispose]();
});

test("records of a release without a second copy open as they are and get one", async () => {
  const directory = join(root, "older");
  mkdirSync(directory);
  {
    using database = new DatabaseSync(join(directory, "records.db"));
    database.exec("PRAGMA journal_mode = WAL; CREATE TABLE applied_migration (id TEXT PRIMARY KEY) STRICT");
    database.exec(migrations[0]?.sql ?? "");
    database.exec("INSERT INTO applied_migration VALUES ('test-1'); INSERT INTO thing VALUES ('a', 'b')");
  }
  const { records, told } = await open(directory);
  assert.deepEqual(await rowsOf(records), [{ name: "a", body: "b" }]);
  assert.deepEqual(told, []);
  await records[Symbol.asyncDispose]();
  assert.match(readFileSync(join(directory, "records.db.journal"), "utf8"), /"table":"thing","row":\["a","b"\]/);
});
