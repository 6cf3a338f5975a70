/** Tests of a data directory with damaged files: the records must open, and a loss must be logged. */
import assert from "node:assert/strict";
import {
  cpSync,
  existsSync,
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
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import * as fc from "fast-check";
import { createLogger, systemClock } from "@galatea/base";
import { openRecords, recordsDefaults, type Records } from "./records.ts";
import type { Migration } from "./statement.ts";
import { makeSnapshot } from "./snapshot-files.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-damage-"));
after(() => rmSync(root, { recursive: true, force: true }));

const migrations: readonly Migration[] = [
  { id: "test-1", sql: "CREATE TABLE thing (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID" },
];
const count = 31;
/** Number of rows in the newest snapshot. Each row is one commit. */
const snapshotCount = 20;
const olderCount = 10;
const snapshotMs = Date.UTC(2026, 10, 24, 15);
const nowMs = snapshotMs + 3_600_000;
const nameOf = (index: number) => `model-${String(index).padStart(2, "0")}`;
const bodyOf = (index: number) => JSON.stringify({ index, text: "x".repeat(100 + 37 * index) });
const expected = Array.from({ length: count }, (_, index) => ({ name: nameOf(index), body: bodyOf(index) }));

interface Opened {
  readonly records: Records;
  readonly warnings: string[];
}

async function open(directory: string): Promise<Opened> {
  const warnings: string[] = [];
  const logger = createLogger((level, message, fields) =>
    warnings.push(`${level}: ${message} ${JSON.stringify(fields)}`),
  );
  const clock = { ...systemClock, epochMs: () => nowMs };
  const snapshots = { folder: join(directory, "snapshots"), daysKept: 0, everyMs: 1, freeBytes: () => Infinity, clock };
  const path = join(directory, "records.db");
  return { warnings, records: await openRecords({ path, migrations, ...recordsDefaults, snapshots, logger }) };
}

const rowsOf = async (records: Records) =>
  (await records.rows("SELECT name, body FROM thing ORDER BY name")).map(({ name, body }) => ({ name, body }));

/** Data directories: a killed platform leaves commits in the write-ahead log; a stopped one does not. */
const killed = join(root, "killed");
const stopped = join(root, "stopped");

before(async () => {
  const live = join(root, "live");
  mkdirSync(join(live, "snapshots"), { recursive: true });
  const plan = { path: join(live, "records.db"), folder: join(live, "snapshots"), daysKept: 7, freeBytes: Infinity };
  const { records } = await open(live);
  for (let index = 0; index < count; index += 1) {
    if (index === olderCount) makeSnapshot({ ...plan, nowMs: snapshotMs - 86_400_000 });
    if (index === snapshotCount) makeSnapshot({ ...plan, nowMs: snapshotMs });
    await records.write([{ sql: "INSERT INTO thing VALUES (?, ?)", values: [nameOf(index), bodyOf(index)] }]);
  }
  cpSync(live, killed, { recursive: true });
  await records[Symbol.asyncDispose]();
  cpSync(live, stopped, { recursive: true });
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

const filesOf = (directory: string) => readdirSync(directory).filter((name) => name.startsWith("records.db"));

/** Opens a damaged directory, writes to it, and opens it again. The second opening must report nothing. */
async function openedTwice(directory: string, what: string) {
  const { records, warnings } = await open(directory);
  const rows = await rowsOf(records);
  await records.write([{ sql: "INSERT INTO thing VALUES ('z', '')", values: [] }]);
  await records[Symbol.asyncDispose]();
  const again = await open(directory);
  assert.equal((await rowsOf(again.records)).length, rows.length + 1, what);
  assert.deepEqual(again.warnings, [], `${what}; again`);
  await again.records[Symbol.asyncDispose]();
  assert.equal(existsSync(join(directory, "records.db.new")), false, what);
  return { rows, warnings };
}

/** Returns the number of changed texts. SQLite has no checksums of pages, so it does not detect a change within a text. */
const changedTexts = (rows: Awaited<ReturnType<typeof rowsOf>>) =>
  rows.filter(({ name, body }, index) => name !== expected[index]?.name || body !== expected[index]?.body).length;

/**
 * Asserts that all rows exist, or that one log line reports a loss. After a loss, the rows must be those of a commit that is
 * not older than the newest snapshot.
 */
function assertWholeOrLogged({ rows, warnings }: Awaited<ReturnType<typeof openedTwice>>, what: string): void {
  const found = `${what}: ${rows.length} rows; ${warnings.join("\n")}`;
  if (warnings.length === 0) {
    assert.equal(rows.length, count, found);
    assert.ok(changedTexts(rows) <= 1, found);
    return;
  }
  assert.equal(warnings.length, 1, found);
  assert.match(found, /warning: /);
  assert.ok(rows.length >= snapshotCount && changedTexts(rows) === 0, found);
}

for (const [state, directory] of [
  ["killed", () => killed],
  ["stopped", () => stopped],
] as const) {
  test(`any flipped bit in records that were ${state} loses at most the writes after the snapshot, and the loss is logged`, async () => {
    const files = filesOf(directory());
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...files), fc.nat({ max: 2 ** 31 - 1 }), async (file, bit) => {
        const copy = copyOf(directory());
        flip(join(copy, file), bit);
        const what = `${file} bit ${bit}`;
        assertWholeOrLogged(await openedTwice(copy, what), what);
        rmSync(copy, { recursive: true });
      }),
      { numRuns: 25, seed: 20_261_124 },
    );
  });

  test(`an empty, garbage, truncated or missing file of records that were ${state} loses at most the writes after the snapshot`, async () => {
    for (const file of filesOf(directory())) {
      for (const [how, damage] of Object.entries({
        empty: (path: string) => truncateSync(path, 0),
        garbage: (path: string) => writeFileSync(path, Buffer.alloc(5000, 0x5a)),
        short: (path: string) => truncateSync(path, Math.floor(readFileSync(path).length / 2)),
        gone: (path: string) => rmSync(path),
      })) {
        const copy = copyOf(directory());
        damage(join(copy, file));
        assertWholeOrLogged(await openedTwice(copy, `${file} ${how}`), `${file} ${how}`);
      }
    }
  });

  test(`a page of zeros or garbage in records that were ${state} loses at most the writes after the snapshot, or one text`, async () => {
    const { length } = readFileSync(join(directory(), "records.db"));
    for (let at = 0; at < length; at += 4096) {
      for (const fill of ["\0", "garbage"]) {
        const copy = copyOf(directory());
        const path = join(copy, "records.db");
        writeFileSync(path, readFileSync(path).fill(fill, at, at + 4096));
        assertWholeOrLogged(await openedTwice(copy, `${fill} at ${at}`), `${fill} at ${at}`);
      }
    }
  });
}

test("a damaged file is replaced by the newest snapshot, with one warning, and kept under another name", async () => {
  const directory = copyOf(stopped);
  const path = join(directory, "records.db");
  writeFileSync(path, "garbage");
  const { rows, warnings } = await openedTwice(directory, "garbage");
  assert.deepEqual(rows, expected.slice(0, snapshotCount));
  const [line = "", ...others] = warnings;
  assert.deepEqual(others, []);
  assert.match(
    line,
    /^warning: a database is damaged: it continues from its newest snapshot, and later writes are lost/,
  );
  const fields = JSON.parse(line.slice(line.indexOf("{"))) as Record<string, unknown>;
  assert.deepEqual(fields, {
    path,
    reason: fields["reason"],
    snapshot: join(directory, "snapshots", "records-20261124T150000Z.db"),
    snapshotAgeSecs: 3600,
    lostCommits: count - snapshotCount,
    aside: "records.db.damaged-1",
  });
  assert.match(String(fields["reason"]), /not a database/);
  assert.equal(readFileSync(`${path}.damaged-1`, "utf8"), "garbage");
});

test("a damaged snapshot is logged, and the previous one is used", async () => {
  const directory = copyOf(stopped);
  const newest = join(directory, "snapshots", "records-20261124T150000Z.db");
  writeFileSync(join(directory, "records.db"), "garbage");
  truncateSync(newest, 6000);
  const { rows, warnings } = await openedTwice(directory, "garbage");
  assert.deepEqual(rows, expected.slice(0, olderCount));
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /"snapshotAgeSecs":90000,.*"damagedSnapshots":"[^"]*records-20261124T150000Z\.db"/);
});

test("without an intact snapshot a damaged database continues empty, with one warning", async () => {
  const directory = copyOf(stopped);
  rmSync(join(directory, "snapshots"), { recursive: true });
  writeFileSync(join(directory, "records.db"), "garbage");
  const { rows, warnings } = await openedTwice(directory, "garbage");
  assert.deepEqual(rows, []);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /has no intact snapshot: all of its data is lost .*"aside":"records\.db\.damaged-1"/);
});

test("a database of another release is rejected and not changed", async () => {
  const directory = copyOf(stopped);
  const files = ["records.db", ...readdirSync(join(directory, "snapshots")).map((name) => join("snapshots", name))];
  for (const file of files) {
    using database = new DatabaseSync(join(directory, file));
    database.exec("UPDATE applied_migration SET id = 'of-another-release'");
  }
  const contents = () => files.map((file) => readFileSync(join(directory, file)));
  const before = contents();
  await assert.rejects(open(directory), {
    message:
      /^'.*records\.db' is from another release of Galatea: it lists unknown migrations: of-another-release; start that release/,
  });
  assert.deepEqual(contents(), before);
  assert.deepEqual(
    readdirSync(directory).filter((name) => /damaged|\.new/.test(name)),
    [],
  );
});

test("a database of a newer release is rejected and not changed, even if a snapshot of this release exists", async () => {
  const directory = copyOf(stopped);
  {
    using database = new DatabaseSync(join(directory, "records.db"));
    database.exec("INSERT INTO applied_migration VALUES ('of-a-newer-release')");
  }
  const before = readFileSync(join(directory, "records.db"));
  await assert.rejects(
    open(directory),
    /records\.db' is of a newer release of Galatea: it lists migrations of a newer release: of-a-newer-release; start that release/,
  );
  assert.deepEqual(readFileSync(join(directory, "records.db")), before);
  assert.deepEqual(
    readdirSync(directory).filter((name) => /damaged|\.new/.test(name)),
    [],
  );
});

test("a truncated write-ahead log is reported with the number of lost commits, and kept under another name", async () => {
  const directory = copyOf(killed);
  const path = join(directory, "records.db-wal");
  // The damage is after the commits that the snapshot contains.
  flip(path, Math.floor(readFileSync(path).length * 0.9) * 8);
  const damaged = readFileSync(path);
  const { rows, warnings } = await openedTwice(directory, "the log");
  assert.ok(rows.length > snapshotCount && rows.length < count, String(rows.length));
  assert.deepEqual(rows, expected.slice(0, rows.length));
  assert.equal(warnings.length, 1);
  assert.match(
    warnings[0] ?? "",
    new RegExp(`^warning: the last writes to a database are lost.*"lostCommits":${count - rows.length}`),
  );
  assert.deepEqual(readFileSync(join(directory, "records.db-wal.damaged-1")), damaged);
});

test("a snapshot is used if the write-ahead log has lost more than the writes after it", async () => {
  const directory = copyOf(killed);
  const path = join(directory, "records.db-wal");
  flip(path, Math.floor(readFileSync(path).length * 0.2) * 8);
  const { rows, warnings } = await openedTwice(directory, "the log");
  assert.deepEqual(rows, expected.slice(0, snapshotCount));
  assert.equal(warnings.length, 1);
  assert.match(
    warnings[0] ?? "",
    new RegExp(`continues from its newest snapshot.*"lostCommits":${count - snapshotCount}`),
  );
});

test("after a start that was killed while it replaced a damaged database, the next start replaces it", async () => {
  const steps: readonly ((directory: string) => void)[] = [
    (directory) => writeFileSync(join(directory, "records.db.new"), "half a copy"),
    (directory) => rmSync(join(directory, "records.db-wal"), { force: true }),
    (directory) => cpSync(join(directory, "records.db"), join(directory, "records.db.damaged-1")),
  ];
  for (let used = 1; used <= steps.length; used += 1) {
    const directory = copyOf(killed);
    writeFileSync(join(directory, "records.db"), "garbage");
    for (const step of steps.slice(0, used)) step(directory);
    const { rows, warnings } = await openedTwice(directory, `after ${used} steps`);
    assert.deepEqual(rows, expected.slice(0, snapshotCount));
    assert.equal(warnings.length, 1);
  }
});
