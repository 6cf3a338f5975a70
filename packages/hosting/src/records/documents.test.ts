import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { silentLogger } from "@galatea/base";
import { DocumentMemory, documentsContract, MemoryDocuments } from "./contracts/index.ts";
import { documentMigrations } from "./document-tables.ts";
import { openDocumentsOver, type DocumentLimits } from "./sqlite-documents.ts";
import { openRecords, recordsDefaults } from "./records.ts";
import { RecordsError } from "./statement.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-documents-"));
after(() => rmSync(root, { recursive: true, force: true }));
let count = 0;

const openDatabase = (path: string) =>
  openRecords({ ...recordsDefaults, path, migrations: documentMigrations, logger: silentLogger });

async function openSubject(limits: DocumentLimits) {
  const path = join(root, `${(count += 1)}.db`);
  let records = await openDatabase(path);
  return {
    documents: await openDocumentsOver(records, limits),
    async reopen() {
      await records[Symbol.asyncDispose]();
      records = await openDatabase(path);
      return await openDocumentsOver(records, limits);
    },
    async [Symbol.asyncDispose]() {
      await records[Symbol.asyncDispose]();
    },
  };
}

documentsContract("documents in SQLite", openSubject);

documentsContract("documents in memory", async (options) => {
  const memory = new DocumentMemory();
  return {
    documents: new MemoryDocuments(memory, options),
    reopen: async () => new MemoryDocuments(memory, options),
    async [Symbol.asyncDispose]() {},
  };
});

test("a page of documents in SQLite is read by range: no step of the plan scans or sorts", async () => {
  await using records = await openDatabase(join(root, "plan.db"));
  const { listStatement } = await import("./document-tables.ts");
  for (const order of [null, "time"]) {
    for (const isDescending of [false, true]) {
      for (const position of [null, { value: "a", key: "b" }]) {
        for (const prefix of ["", "a"]) {
          const { sql, values } = listStatement({
            kind: "thing",
            order,
            isDescending,
            prefix,
            after: position,
            limit: 10,
          });
          const plan = (await records.rows(`EXPLAIN QUERY PLAN ${sql}`, ...values)).map(({ detail }) => String(detail));
          assert.ok(!/SCAN|TEMP B-TREE/.test(plan.join("\n")), plan.join("\n"));
        }
      }
    }
  }
});

test("a write is acknowledged although the disk is full when old deletions are removed", async () => {
  await using records = await openDatabase(join(root, "forgetting.db"));
  let isFull = true;
  const documents = await openDocumentsOver(
    {
      rows: (sql, ...values) => records.rows(sql, ...values),
      write(statements) {
        const forgets = statements.some(({ sql }) => sql.startsWith("DELETE FROM document_gone WHERE version <="));
        if (isFull && forgets) return Promise.reject(new RecordsError("database or disk is full", 13));
        return records.write(statements);
      },
      async [Symbol.asyncDispose]() {},
    },
    { deletionsMax: 4, batchMax: 10 },
  );
  const tombstoneCount = async () => Number((await records.rows("SELECT COUNT(*) AS n FROM document_gone"))[0]?.["n"]);
  const putAndDelete = async (key: string) => {
    await documents.write([{ do: "put", kind: "k", key, body: "", expects: "absent" }]);
    await documents.write([{ do: "delete", kind: "k", key, expects: "any" }]);
  };
  for (const key of ["a", "b", "c", "d", "e", "f"]) await putAndDelete(key);
  assert.equal(await tombstoneCount(), 6);
  isFull = false;
  await documents.write([{ do: "put", kind: "k", key: "g", body: "", expects: "absent" }]);
  assert.equal(await tombstoneCount(), 2);
});
