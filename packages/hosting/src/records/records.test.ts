import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { silentLogger } from "@galatea/base";
import { RecordsError, type Migration } from "./statement.ts";
import { openRecords, recordsDefaults, type Records } from "./records.ts";

const logger = silentLogger;
const root = mkdtempSync(join(tmpdir(), "galatea-records-"));
after(() => rmSync(root, { recursive: true, force: true }));

const migrations: readonly Migration[] = [
  { id: "test-1", sql: "CREATE TABLE thing (name TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT" },
];
const insert = (name: string, number: number) => ({ sql: "INSERT INTO thing VALUES (?, ?)", values: [name, number] });
const names = async (records: Records) =>
  (await records.rows("SELECT name FROM thing ORDER BY name")).map((row) => row.name);

test("a transaction is written completely or not at all, and does not affect others of the same commit", async () => {
  await using records = await openRecords({ path: join(root, "a.sqlite"), migrations, ...recordsDefaults, logger });
  const outcomes = await Promise.allSettled([
    records.write([insert("a", 1), insert("b", 2)]),
    records.write([insert("c", 3), insert("a", 4)]),
    records.write([insert("d", 5)]),
  ]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  assert(outcomes[1]?.status === "rejected" && outcomes[1].reason instanceof RecordsError);
  assert.match(outcomes[1].reason.message, /UNIQUE constraint failed: thing.name/);
  assert.deepEqual(await names(records), ["a", "b", "d"]);
});

test("migrations are applied once and in order; closing writes all pending transactions", async () => {
  const path = join(root, "b.sqlite");
  const first = await openRecords({ path, migrations, ...recordsDefaults, logger });
  const writing = first.write([insert("kept", 1)]);
  await first[Symbol.asyncDispose]();
  await writing;
  await assert.rejects(first.write([insert("late", 1)]), /closed/);
  const more = [...migrations, { id: "test-2", sql: "ALTER TABLE thing ADD COLUMN note TEXT" }];
  await using second = await openRecords({ path, migrations: more, ...recordsDefaults, logger });
  assert.deepEqual(
    (await second.rows("SELECT name, note FROM thing")).map((row) => ({ ...(row as object) })),
    [{ name: "kept", note: null }],
  );
});

test("a failed migration leaves the database unchanged and is named in the error", async () => {
  const broken = [...migrations, { id: "test-2", sql: "CREATE TABLE half (x) STRICT; NONSENSE" }];
  const path = join(root, "c.sqlite");
  await assert.rejects(openRecords({ path, migrations: broken, ...recordsDefaults, logger }), /migration test-2/);
  await using records = await openRecords({ path, migrations, ...recordsDefaults, logger });
  assert.deepEqual(await records.rows("SELECT name FROM sqlite_master WHERE name = 'half'"), []);
});

test("writes over the limit are rejected at once", async () => {
  await using records = await openRecords({
    path: join(root, "d.sqlite"),
    migrations,
    ...recordsDefaults,
    logger,
    pendingMax: 2,
  });
  const outcomes = await Promise.allSettled([1, 2, 3].map((number) => records.write([insert(`n${number}`, number)])));
  assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 2);
  await records.write([insert("after", 1)]);
});

test("acknowledged writes are there after kill -9", async () => {
  const path = join(root, "killed.sqlite");
  const program = `
    import { openRecords, recordsDefaults } from ${JSON.stringify(new URL("./records.ts", import.meta.url).href)};
    import { silentLogger } from ${JSON.stringify(new URL("../../../base/src/core/index.ts", import.meta.url).href)};
    const migrations = ${JSON.stringify(migrations)};
    const records = await openRecords({ path: ${JSON.stringify(path)}, migrations, ...recordsDefaults, logger: silentLogger });
    for (let number = 0; ; number += 1) {
      await records.write([{ sql: "INSERT INTO thing VALUES (?, ?)", values: [String(number), number] }]);
      process.stdout.write(number + "\\n");
    }`;
  writeFileSync(join(root, "writer.mjs"), program);
  const child = spawn(process.execPath, [join(root, "writer.mjs")], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8");
  for await (const chunk of child.stdout as AsyncIterable<string>) {
    output += chunk;
    if (output.split("\n").length > 40) child.kill("SIGKILL");
  }
  const acknowledged = Number(output.trimEnd().split("\n").at(-1));
  assert(acknowledged >= 38);
  await using records = await openRecords({ path, migrations, ...recordsDefaults, logger });
  const numbers = (await records.rows("SELECT number FROM thing ORDER BY number")).map((row) => row.number);
  assert.deepEqual(numbers.slice(0, acknowledged + 1), [...Array(acknowledged + 1).keys()]);
});
