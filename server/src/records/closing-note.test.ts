/** What an orderly close notes, and when a start believes it. */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createLogger } from "../base/index.ts";
import { openRecords, recordsDefaults, type Migration, type Records } from "./index.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-closing-"));
after(() => rmSync(root, { recursive: true, force: true }));

const first: Migration = { id: "one", sql: "CREATE TABLE thing (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID" };
const second: Migration = { id: "two", sql: "CREATE TABLE other (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID" };

class Place {
  readonly directory = mkdtempSync(join(root, "place-"));
  readonly told: string[] = [];

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

test("after an orderly close a start goes on with both copies as they are, and the note is gone while it runs", async () => {
  const place = new Place();
  await place.add("a", "b");
  assert.ok(existsSync(place.file(".closed")));
  const before = statSync(place.file(".journal"));
  await using records = await place.open();
  assert.equal(existsSync(place.file(".closed")), false);
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

test("a note of an earlier close is not believed: what was written since is there, and its loss is found", async () => {
  const place = new Place();
  await place.add("a");
  const note = join(root, "note");
  const old = join(root, "old.db");
  cpSync(place.file(".closed"), note);
  cpSync(place.file(""), old);
  await place.add("b");
  cpSync(note, place.file(".closed"));
  assert.deepEqual(await place.names(), ["a", "b"]);
  assert.deepEqual(place.told, []);
  // An older database beside the newer journal.
  cpSync(note, place.file(".closed"));
  cpSync(old, place.file(""));
  assert.deepEqual(await place.names(), ["a", "b"]);
  assert.match(place.told.join(), /damaged/);
});

test("both copies of an earlier close, with its note, are found by the count of commits", async () => {
  const place = new Place();
  await place.add("a");
  const old = join(root, "copies");
  cpSync(place.directory, old, { recursive: true });
  await place.add("b");
  for (const suffix of ["", ".journal", ".closed"]) cpSync(join(old, `records.db${suffix}`), place.file(suffix));
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
