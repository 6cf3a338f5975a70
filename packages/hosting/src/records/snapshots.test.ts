/** Tests of snapshots of a database in use, and of databases that are restored from a snapshot. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import * as fc from "fast-check";
import { createLogger, silentLogger, systemClock } from "@galatea/base";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { copyDatabase } from "./snapshot-files.ts";
import { openRecords, recordsDefaults, type Records } from "./records.ts";
import { restoreDatabase } from "./replace-database.ts";
import type { Migration } from "./statement.ts";
import { keptSnapshots, listSnapshots, makeSnapshot } from "./snapshot-files.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-snapshots-"));
after(() => rmSync(root, { recursive: true, force: true }));

const migrations: readonly Migration[] = [{ id: "one", sql: "CREATE TABLE thing (number INTEGER PRIMARY KEY) STRICT" }];
const dayMs = 86_400_000;
/** The clock begins at noon, so that no test spans midnight. */
const clock = { ...systemClock, epochMs: () => Date.UTC(2026, 10, 24, 12) + Math.floor(performance.now()) };

class Location {
  readonly directory = mkdtempSync(join(root, "place-"));
  readonly path = join(this.directory, "records.db");
  readonly folder = join(this.directory, "snapshots");
  readonly lines: string[] = [];
  readonly plan = { path: this.path, folder: this.folder, freeBytes: Infinity };
  readonly examined = { path: this.path, migrations, busyTimeoutMs: 5000 };

  constructor() {
    mkdirSync(this.folder);
  }

  open(daysKept = 2, everyMs = 1, freeBytes = Infinity): Promise<Records> {
    const logger = createLogger((level, message, fields) =>
      this.lines.push(`${level}: ${message} ${String(fields?.["error"] ?? "")}`.trim()),
    );
    const snapshots = { folder: this.folder, daysKept, everyMs, freeBytes: () => freeBytes, clock };
    return openRecords({ ...recordsDefaults, path: this.path, migrations, snapshots, logger });
  }

  async add(...numbers: readonly number[]): Promise<void> {
    await using records = await this.open(0);
    for (const number of numbers) await insert(records, number);
  }

  async numbers(): Promise<readonly unknown[]> {
    await using records = await this.open(0);
    return (await records.rows("SELECT number FROM thing ORDER BY number")).map(({ number }) => number);
  }
}

const insert = (records: Records, number: number) =>
  records.write([{ sql: "INSERT INTO thing VALUES (?)", values: [number] }]);

function numbersIn(path: string): readonly unknown[] {
  using database = new DatabaseSync(path, { readOnly: true });
  return database
    .prepare("SELECT number FROM thing ORDER BY number")
    .all()
    .map(({ number }) => number);
}

test("a database that changes gets snapshots during writes, and only those of the last days are kept", async () => {
  const location = new Location();
  const ofDay = (daysAgo: number) => clock.epochMs() - daysAgo * dayMs;
  await location.add(1);
  for (const daysAgo of [4, 3, 2, 1]) {
    makeSnapshot({ ...location.plan, daysKept: 9, nowMs: ofDay(daysAgo) });
  }
  let number = 1;
  {
    await using records = await location.open();
    const names = new Set<string>();
    await eventually(async () => {
      await insert(records, (number += 1));
      for (const { path } of listSnapshots(location.path, location.folder)) names.add(path);
      // The earlier snapshots and two of today.
      return names.size === 6;
    });
  }
  const [newest = [], yesterday, ...others] = listSnapshots(location.path, location.folder).map(({ path }) =>
    numbersIn(path),
  );
  assert.deepEqual(
    newest,
    newest.map((_, index) => index + 1),
  );
  assert.ok(newest.length > 1 && newest.length <= number, `${newest.length} of ${number}`);
  assert.deepEqual([yesterday, others], [[1], []]);
  assert.deepEqual(location.lines, []);
});

test("a failed snapshot is logged, and writes continue", async () => {
  const location = new Location();
  rmSync(location.folder, { recursive: true });
  await using records = await location.open();
  await insert(records, 1);
  await eventually(() => location.lines.length > 0);
  assert.match(location.lines[0] ?? "", /^warning: no snapshot of a database was made/);
  await insert(records, 2);
});

test("no snapshot is made if it would leave less free space than the size of its database", async () => {
  const location = new Location();
  await using records = await location.open(2, 1, 1000);
  await insert(records, 1);
  await eventually(() => location.lines.length > 0);
  assert.match(
    location.lines[0] ?? "",
    /^warning: no snapshot of a database was made Error: '.*snapshots' has 1000 bytes free, and a snapshot needs \d+$/,
  );
  assert.deepEqual(readdirSync(location.folder), []);
});

test("an incomplete copy left by kill -9 is deleted with the next snapshot", async () => {
  const location = new Location();
  await location.add(1);
  writeFileSync(join(location.folder, "records-20200101T000000Z.db.partial"), "half");
  writeFileSync(join(location.folder, "records-20200101T000000Z.db.partial-journal"), "half");
  writeFileSync(join(location.folder, "metrics-20200101T000000Z.db.partial"), "another database's");
  makeSnapshot({ ...location.plan, daysKept: 1, nowMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678) });
  assert.deepEqual(readdirSync(location.folder).toSorted(), [
    "metrics-20200101T000000Z.db.partial",
    "records-20260102T030405Z.db",
  ]);
});

test("kill -9 during a snapshot loses no write, and its files are deleted later", async () => {
  const location = new Location();
  const program = `
    import { openRecords, recordsDefaults } from ${JSON.stringify(new URL("./records.ts", import.meta.url).href)};
    import { silentLogger, systemClock } from ${JSON.stringify(new URL("../../../base/src/core/index.ts", import.meta.url).href)};
    const snapshots = { folder: ${JSON.stringify(location.folder)}, daysKept: 1, everyMs: 1, freeBytes: () => Infinity, clock: systemClock };
    const shared = { ...recordsDefaults, logger: silentLogger, snapshots };
    const records = await openRecords({ ...shared, ...${JSON.stringify(location.examined)} });
    for (let number = 1; ; number += 1) {
      await records.write([{ sql: "INSERT INTO thing VALUES (?)", values: [number] }]);
      process.stdout.write(number + "\\n");
    }`;
  const path = join(location.directory, "writer.mjs");
  writeFileSync(path, program);
  const child = spawn(process.execPath, [path], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += String(chunk)));
  using watcher = { folder: watch(location.folder), [Symbol.dispose]: () => watcher.folder.close() };
  watcher.folder.on("change", (_event, name) => {
    if (String(name).endsWith(".partial") && output.split("\n").length > 40) child.kill("SIGKILL");
  });
  await once(child, "close");
  const acknowledged = Number(output.slice(0, output.lastIndexOf("\n")).split("\n").at(-1));
  const numbers = await location.numbers();
  assert.ok(acknowledged >= 40 && numbers.length >= acknowledged, `${numbers.length} of ${acknowledged}`);
  assert.deepEqual(location.lines, []);
  makeSnapshot({ ...location.plan, daysKept: 1, nowMs: systemClock.epochMs() + 1000 });
  assert.equal(readdirSync(location.folder).length, 1);
});

test("the number of snapshots is limited, the newest is kept, and those dated in the future are deleted", () => {
  const timesMs = fc.uniqueArray(fc.nat(40), { maxLength: 60 });
  fc.assert(
    fc.property(timesMs, fc.integer({ min: 1, max: 10 }), fc.nat(40), (quarters, daysKept, now) => {
      const [quarterMs, nowMs] = [dayMs / 4, (now * dayMs) / 4];
      const snapshots = quarters
        .toSorted((a, b) => b - a)
        .map((quarter) => ({ path: String(quarter), madeMs: quarter * quarterMs }));
      const past = snapshots.filter(({ madeMs }) => madeMs <= nowMs);
      const kept = keptSnapshots(snapshots, daysKept, nowMs);
      assert.equal(kept[0], past[0]);
      assert.ok(kept.length <= daysKept && kept.every((each) => past.includes(each)));
      const days = (of: typeof kept) => new Set(of.map(({ madeMs }) => Math.floor(madeMs / dayMs)));
      assert.deepEqual(days(kept).size, kept.length);
      assert.equal(kept.length, Math.min(daysKept, days(past).size));
    }),
  );
});

test("a copy of an open database has all commits, and its file appears only when complete", async () => {
  const location = new Location();
  await using records = await location.open(0);
  const to = join(location.directory, "copy.db");
  await insert(records, 1);
  copyDatabase(location.path, to);
  await insert(records, 2);
  assert.deepEqual(numbersIn(to), [1]);
  assert.throws(() => copyDatabase(join(location.directory, "none.db"), to));
  assert.deepEqual(numbersIn(to), [1]);
  assert.deepEqual(
    readdirSync(location.directory).filter((name) => name.endsWith(".partial")),
    [],
  );
});

test("restored records equal the file, the previous ones are kept under another name, and the next start reports no damage", async () => {
  const location = new Location();
  const from = join(location.directory, "copy.db");
  await location.add(1, 2);
  copyDatabase(location.path, from);
  const bytes = readFileSync(from);
  await location.add(3);
  assert.deepEqual(restoreDatabase(from, location.examined), { at: "restored", aside: ["records.db.replaced-1"] });
  assert.deepEqual(await location.numbers(), [1, 2]);
  assert.deepEqual(numbersIn(`${location.path}.replaced-1`), [1, 2, 3]);
  assert.deepEqual(readFileSync(from), bytes, "the file is only read");
  await location.add(4);
  assert.deepEqual(await location.numbers(), [1, 2, 4]);
  assert.deepEqual(location.lines, []);
});

test("a copy is complete for a release that has dropped a table with AUTOINCREMENT", async () => {
  const location = new Location();
  const dropped = [
    { id: "zero", sql: "CREATE TABLE counted (number INTEGER PRIMARY KEY AUTOINCREMENT) STRICT" },
    { id: "half", sql: "DROP TABLE counted" },
  ];
  const examined = { ...location.examined, migrations: [...dropped, ...migrations] };
  const { path } = location;
  await (await openRecords({ ...recordsDefaults, ...examined, logger: silentLogger }))[Symbol.asyncDispose]();
  copyDatabase(path, `${path}.copy`);
  assert.equal(restoreDatabase(`${path}.copy`, examined).at, "restored");
});

test("a file without records of these migrations is rejected, and nothing changes", async () => {
  const location = new Location();
  await location.add(1);
  const other = join(location.directory, "other.db");
  for (const [make, reason] of [
    [(): void => writeFileSync(other, ""), /it holds no records/],
    [(): void => writeFileSync(other, "garbage"), /not a database/],
    [
      (): void => {
        using database = new DatabaseSync(other);
        database.exec("CREATE TABLE applied_migration (id TEXT PRIMARY KEY) STRICT");
        database.exec("INSERT INTO applied_migration VALUES ('another')");
      },
      /unknown migrations: another/,
    ],
  ] as const) {
    rmSync(other, { force: true });
    make();
    const restored = restoreDatabase(other, location.examined);
    assert.equal(restored.at, "refused");
    assert.match(restored.at === "refused" ? restored.reason : "", reason);
    assert.deepEqual(readdirSync(location.directory).toSorted(), [
      "other.db",
      "records.db",
      "records.db.commits",
      "snapshots",
    ]);
  }
  assert.deepEqual(await location.numbers(), [1]);
});
