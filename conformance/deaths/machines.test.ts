/** The list of all that moves is whole: every kind of document that the platform writes is in it, and every test that it names is there. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { filedMachines, plainKinds, recordedMachines } from "./machines.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** Folders of sources that keep documents. */
const folders = ["packages/hosting/src", "packages/aws/src", "packages/galatea/src"];

/** Kinds of documents that a source file names. */
function kindsIn(text: string): readonly string[] {
  const constants = text.matchAll(/^const (?:kind|\w+Kind) = "([a-z-]+)";$/gm);
  const records = text.matchAll(/new (?:RecordKind|RecordedValues)(?:<[^(]*>)?\(\s*(?:[\w.]+,\s*)?"([a-z-]+)"/g);
  return [...constants, ...records].map(([, kind = ""]) => kind);
}

test("every kind of document is a machine's, or is written once", () => {
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .map(String)
      .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
      .map((name) => readFileSync(join(root, folder, name), "utf8")),
  );
  const listed = [...recordedMachines.flatMap(({ kinds }) => kinds), ...plainKinds];
  assert.deepEqual([...new Set(files.flatMap(kindsIn))].toSorted(), listed.toSorted());
});

test("every test of a machine is there, and its table has the moves that are listed", () => {
  for (const { what, moves, tests } of recordedMachines) {
    const [table = "", ...others] = tests.map((path) => readFileSync(join(root, path), "utf8"));
    assert.ok(table.includes(`name: "${what}"`), what);
    for (const move of moves) assert.match(table, new RegExp(`^ +(?:${move}|"${move}"): \\[`, "m"), `${what}: ${move}`);
    assert.ok(others.every((text) => text.includes("test(")));
  }
  for (const { tests } of filedMachines) {
    for (const path of tests) assert.match(readFileSync(join(root, path), "utf8"), /^test\(/m);
  }
});
