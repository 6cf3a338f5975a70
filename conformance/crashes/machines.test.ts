/**
 * The lists of machines.ts are complete: they contain every kind of document that the platform writes, and their test
 * files exist.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { fileMachines, plainKinds, recordedMachines } from "./machines.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** Folders of sources that keep documents. */
const folders = ["packages/hosting/src", "packages/aws/src", "packages/galatea/src"];

/** Kinds of documents that a source file names. */
function kindsIn(text: string): readonly string[] {
  const constants = text.matchAll(/^const (?:kind|\w+Kind) = "([a-z-]+)";$/gm);
  const records = text.matchAll(/new (?:RecordKind|RecordedValues)(?:<[^(]*>)?\(\s*(?:[\w.]+,\s*)?"([a-z-]+)"/g);
  return [...constants, ...records].map(([, kind = ""]) => kind);
}

test("every kind of document belongs to a state machine or is written only once", () => {
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .map(String)
      .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
      .map((name) => readFileSync(join(root, folder, name), "utf8")),
  );
  const listed = [...recordedMachines.flatMap(({ kinds }) => kinds), ...plainKinds];
  assert.deepEqual([...new Set(files.flatMap(kindsIn))].toSorted(), listed.toSorted());
});

test("the tests of every state machine exist and cover the listed transitions", () => {
  for (const { what, transitions: steps, tests } of recordedMachines) {
    const [table = "", ...others] = tests.map((path) => readFileSync(join(root, path), "utf8"));
    assert.ok(table.includes(`name: "${what}"`), what);
    for (const transition of steps)
      assert.match(table, new RegExp(`^ +(?:${transition}|"${transition}"): \\[`, "m"), `${what}: ${transition}`);
    assert.ok(others.every((text) => text.includes("test(")));
  }
  for (const { tests } of fileMachines) {
    for (const path of tests) assert.match(readFileSync(join(root, path), "utf8"), /^test\(/m);
  }
});
