import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { silentLogger } from "@galatea/base";
import { openDocuments } from "./sqlite-documents.ts";
import { openSqliteSource } from "./sqlite-copy.ts";

const directory = mkdtempSync(join(tmpdir(), "galatea-copy-"));
after(() => rmSync(directory, { recursive: true }));

for (const [release, sql, advice] of [
  ["newer", "INSERT INTO applied_migration VALUES ('of-a-newer-release')", "copy it with that release"],
  ["older", "DELETE FROM applied_migration", "start this release over it once, then copy it"],
] as const) {
  test(`a database file of ${release === "older" ? "an" : "a"} ${release} release is rejected as the source of a copy, with what to do`, async () => {
    const path = join(directory, `${release}.db`);
    const documents = await openDocuments({ path, snapshots: null, logger: silentLogger });
    await documents[Symbol.asyncDispose]();
    const database = new DatabaseSync(path);
    database.exec(sql);
    database.close();
    assert.throws(() => openSqliteSource(path, { isInUse: false }), {
      message: `'${path}' is of ${release === "older" ? "an" : "a"} ${release} release of Galatea; ${advice}`,
    });
  });
}
