/** What is noted of both copies, and when a start believes it. */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import * as fc from "fast-check";
import { createLogger, sealLine } from "../base/index.ts";
import { pagesInLog, sumPages } from "./database-pages.ts";
import { checkSeal } from "./database-seal.ts";
import { openRecords, recordsDefaults, type Migration, type Records } from "./index.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-seal-"));
after(() => rmSync(root, { recursive: true, force: true }));

const first: Migration = { id: "one", sql: "CREATE TABLE thing (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID" };
const second: Migration = { id: "two", sql: "CREATE TABLE other (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID" };

class Place {
  readonly directory = mkdtempSync(join(root, "place-"));
  readonly told: string[] = [];

  /** As its files are now. */
  copy(): Place {
    const copy = new Place();
    cpSync(this.directory, copy.directory, { recursive: true });
    return copy;
  }

  file(suffix: string): string {
    return join(this.directory, `records.db${suffix}`);
  }

  open(migrations: readonly Migration[] = [first]): Promise<Records> {
    const logger = createLogger((_, message) => this.told.push(message));
    return openRecords({ path: this.file(""), migrations, ...recordsDefaults, logger });
  }

  /** Opens, adds these, and closes in order. */
  async add(...names: readonly string[]): Promise<void> {
    await using records = await this.open();
    for (const name of names) await records.write([{ sql: "INSERT INTO thing VALUES (?)", values: [name] }]);
  }

  async names(): Promise<readonly unknown[]> {
    await using records = await this.open();
    return (await records.rows("SELECT name FROM thing ORDER BY name")).map(({ name }) => name);
  }
}

/** What kill -9 leaves of records that were closed with `before` and opened again for `after`. */
async function killed(before: readonly string[], afterwards: readonly string[]): Promise<Place> {
  const live = new Place();
  await live.add(...before);
  await using records = await live.open();
  for (const name of afterwards) await records.write([{ sql: "INSERT INTO thing VALUES (?)", values: [name] }]);
  return live.copy();
}

const isBelieved = (place: Place) => checkSeal(place.file(""), place.file(".journal")) !== null;

test("after an orderly close a start goes on with both copies as they are", async () => {
  const place = new Place();
  await place.add("a", "b");
  assert.ok(isBelieved(place));
  const before = statSync(place.file(".journal"));
  await using records = await place.open();
  await records.write([{ sql: "INSERT INTO thing VALUES ('c')", values: [] }]);
  const now = statSync(place.file(".journal"));
  assert.equal(now.ino, before.ino, "begun anew, the journal would be another file");
  assert.ok(now.size > before.size);
  assert.deepEqual(place.told, []);
});

test("the journal that was gone on with restores a database that is lost", async () => {
  const place = new Place();
  await place.add("a");
  await place.add("b");
  await place.add("c");
  rmSync(place.file(""));
  assert.deepEqual(await place.names(), ["a", "b", "c"]);
  assert.match(place.told.join(), /damaged; it is kept aside and its records are restored/);
});

test("a seal of an earlier close is not believed: what was written since is there, and its loss is found", async () => {
  const place = new Place();
  await place.add("a");
  const note = join(root, "note");
  const old = join(root, "old.db");
  cpSync(place.file(".seal"), note);
  cpSync(place.file(""), old);
  await place.add("b");
  cpSync(note, place.file(".seal"));
  assert.deepEqual(await place.names(), ["a", "b"]);
  assert.deepEqual(place.told, []);
  // An older database beside the newer journal.
  cpSync(note, place.file(".seal"));
  cpSync(old, place.file(""));
  assert.deepEqual(await place.names(), ["a", "b"]);
  assert.match(place.told.join(), /damaged/);
});

test("both copies of an earlier close, with its seal, are found by the count of commits", async () => {
  const place = new Place();
  await place.add("a");
  const old = join(root, "copies");
  cpSync(place.directory, old, { recursive: true });
  await place.add("b");
  for (const suffix of ["", ".journal", ".seal"]) cpSync(join(old, `records.db${suffix}`), place.file(suffix));
  assert.deepEqual(await place.names(), ["a"]);
  assert.match(place.told.join(), /the last writes to a database are lost/);
});

test("a migration that is new is applied after an orderly close, and is in the journal", async () => {
  const place = new Place();
  await place.add("a");
  {
    await using records = await place.open([first, second]);
    await records.write([{ sql: "INSERT INTO other VALUES ('x')", values: [] }]);
  }
  assert.match(readFileSync(place.file(".journal"), "utf8"), /"two"/);
  await using records = await place.open([first, second]);
  assert.equal((await records.rows("SELECT name FROM other")).length, 1);
  assert.deepEqual(place.told, []);
});

test("after kill -9 a start goes on with both copies as they are, commits behind the journal's beginning among them", async () => {
  const place = await killed(["a", "b"], ["c", "d"]);
  const before = statSync(place.file(".journal"));
  assert.ok(statSync(place.file("-wal")).size > 0);
  assert.ok(isBelieved(place));
  assert.deepEqual(await place.names(), ["a", "b", "c", "d"]);
  const now = statSync(place.file(".journal"));
  assert.deepEqual([now.ino, now.size], [before.ino, before.size], "read row by row, it would be begun anew");
  assert.deepEqual(place.told, []);
  rmSync(place.file(""));
  assert.deepEqual(await place.names(), ["a", "b", "c", "d"], "the journal has all");
});

test("a commit that a kill kept from the journal, whole or in part, is there, and in the journal from then on", async () => {
  for (const cutBytes of [1, 10, -1]) {
    const place = await killed(["a"], ["b", "c"]);
    const journal = readFileSync(place.file(".journal"));
    const lastLine = journal.length - journal.lastIndexOf("\n", journal.length - 2) - 1;
    truncateSync(place.file(".journal"), journal.length - (cutBytes < 0 ? lastLine : cutBytes));
    truncateSync(place.file(".commits"), 0);
    assert.deepEqual(await place.names(), ["a", "b", "c"]);
    assert.deepEqual(place.told, [], `cut by ${cutBytes}`);
    rmSync(place.file(""));
    assert.deepEqual(await place.names(), ["a", "b", "c"]);
  }
});

test("a commit that the log has lost is found by the count, and comes from the journal", async () => {
  const place = await killed(["a"], ["b", "c"]);
  truncateSync(place.file("-wal"), statSync(place.file("-wal")).size - 100);
  assert.ok(isBelieved(place), "what is left is as it was written");
  assert.deepEqual(await place.names(), ["a", "b", "c"]);
  assert.match(place.told.join(), /damaged; it is kept aside and its records are restored/);
});

const names = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`.padEnd(2000, "."));

test("a kill while pages are moved from the log into the file, any of them moved, costs nothing and reads no row", async () => {
  const before = new Place();
  await before.add(...names(20, "a"));
  const records = await before.open();
  for (const name of names(60, "b")) await records.write([{ sql: "INSERT INTO thing VALUES (?)", values: [name] }]);
  const unmoved = before.copy();
  await records[Symbol.asyncDispose]();
  const [from, to] = [unmoved, before].map((place) => readFileSync(place.file("")));
  assert.ok(from !== undefined && to !== undefined && to.length > from.length);
  const pageBytes = sumPages(before.file(""))?.pageBytes ?? 0;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1 }), async (isMoved) => {
      const place = unmoved.copy();
      const file = Buffer.alloc(to.length);
      from.copy(file);
      let end = from.length;
      for (let at = 0; at < to.length; at += pageBytes) {
        if (isMoved[(at / pageBytes) % isMoved.length] !== true) continue;
        to.copy(file, at, at, at + pageBytes);
        end = Math.max(end, at + pageBytes);
      }
      writeFileSync(place.file(""), file.subarray(0, end));
      const { ino } = statSync(place.file(".journal"));
      assert.ok(isBelieved(place));
      assert.equal((await place.names()).length, 80);
      assert.equal(statSync(place.file(".journal")).ino, ino);
      assert.deepEqual(place.told, []);
      rmSync(place.directory, { recursive: true });
    }),
    { numRuns: 20 },
  );
});

test("pages that SQLite has moved in the middle of a life are sealed as they are moved", async () => {
  const place = new Place();
  await place.add("a");
  await using records = await place.open();
  // Over a thousand pages each: SQLite moves them by itself then.
  for (const prefix of ["x", "y", "z"]) {
    const statements = names(2000, prefix).map((name) => ({ sql: "INSERT INTO thing VALUES (?)", values: [name] }));
    await records.write(statements);
  }
  await records.write([{ sql: "INSERT INTO thing VALUES ('last')", values: [] }]);
  assert.ok(statSync(place.file("")).size > 6000 * 2000);
  const left = place.copy();
  assert.ok(isBelieved(left));
  assert.equal((await left.names()).length, 6002);
  assert.deepEqual(left.told, []);
});

test("a page that is not what it was, and not in the log, is not believed; both copies are compared then", async () => {
  const left = await killed(names(50, "a"), ["b"]);
  const pageBytes = sumPages(left.file(""))?.pageBytes ?? 0;
  const pageCount = statSync(left.file("")).size / pageBytes;
  const inLog = pagesInLog(left.file("-wal"));
  assert.ok(inLog.size > 0);
  await fc.assert(
    fc.asyncProperty(fc.nat(), async (chosen) => {
      const place = left.copy();
      const bytes = readFileSync(place.file(""));
      const bit = chosen % (bytes.length * 8);
      bytes[bit >>> 3]! ^= 1 << (bit & 7);
      writeFileSync(place.file(""), bytes);
      const page = Math.floor((bit >>> 3) / pageBytes) + 1;
      assert.equal(isBelieved(place), inLog.has(page), `page ${page} of ${pageCount}`);
      assert.equal((await place.names()).length, 51);
      rmSync(place.directory, { recursive: true });
    }),
    { numRuns: 20 },
  );
});

test("of a log only what is committed counts, of a garbled one nothing that was not written", async () => {
  const place = await killed(["a"], names(5, "b"));
  const path = place.file("-wal");
  const log = readFileSync(path);
  const all = pagesInLog(path);
  fc.assert(
    fc.property(fc.nat(log.length), (length) => {
      writeFileSync(path, log.subarray(0, length));
      const found = pagesInLog(path);
      assert.ok([...found].every((page) => all.has(page)));
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 500 }), (bytes) => {
      writeFileSync(path, bytes);
      assert.equal(pagesInLog(path).size, 0);
    }),
  );
  assert.equal(pagesInLog(place.file("-none")).size, 0);
  const uncommitted = Buffer.from(log);
  for (let at = 32; at < log.length; at += 24 + log.readUInt32BE(8)) uncommitted.writeUInt32BE(0, at + 4);
  writeFileSync(path, uncommitted);
  assert.equal(pagesInLog(path).size, 0);
  const ofAnotherLog = Buffer.from(log);
  ofAnotherLog.writeUInt32BE(log.readUInt32BE(16) + 1, 16);
  writeFileSync(path, ofAnotherLog);
  assert.equal(pagesInLog(path).size, 0);
});

test("a seal that cannot be written keeps nothing from going on, and is told", async () => {
  const place = new Place();
  await place.add("a");
  mkdirSync(place.file(".seal.new"));
  await place.add("b");
  assert.match(place.told.join(), /checksums of a database were not written/);
  rmSync(place.file(".seal.new"), { recursive: true });
  place.told.length = 0;
  assert.deepEqual(await place.names(), ["a", "b"]);
  assert.deepEqual(place.told, []);
});

test("a seal of any other content is not believed", async () => {
  const place = new Place();
  await place.add("a");
  const sound = readFileSync(place.file(".seal"));
  fc.assert(
    fc.property(fc.nat(), fc.boolean(), (chosen, isCut) => {
      const bytes = Buffer.from(sound);
      const bit = chosen % (bytes.length * 8);
      bytes[bit >>> 3]! ^= 1 << (bit & 7);
      writeFileSync(place.file(".seal"), isCut ? sound.subarray(0, bit >>> 3) : bytes);
      assert.equal(isBelieved(place), false);
    }),
  );
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const line = Buffer.from(sealLine(JSON.stringify(value)));
      writeFileSync(place.file(".seal"), Buffer.concat([line, Buffer.from("\n")]));
      assert.equal(isBelieved(place), false);
    }),
  );
});
