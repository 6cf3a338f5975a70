import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { dataDirectories, type DataDirectories } from "./directories.ts";
import { formatPath, migrateDataFormat, type FormatStep } from "./data-format.ts";

let root: string;
let directories: DataDirectories;
let applied: string[];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "galatea-format-"));
  directories = dataDirectories(root, {});
  await mkdir(directories.records);
  applied = [];
});
afterEach(() => rm(root, { recursive: true }));

const step =
  (name: string): FormatStep =>
  async ({ root: input }) => {
    assert.equal(input, root);
    applied.push(name);
  };
const steps = [step("to 2"), step("to 3")];
const recorded = async () => JSON.parse(await readFile(formatPath(directories), "utf8")) as unknown;

test("a new data directory has the format of its release, and no step is applied", async () => {
  await migrateDataFormat(directories, { release: "0.3.0", steps });
  assert.deepEqual(applied, []);
  assert.deepEqual(await recorded(), { format: 3, release: "0.3.0" });
});

test("a directory with records and without a recorded format has the first one, and each step is applied once, in order", async () => {
  await writeFile(join(directories.records, "galatea.db"), "");
  await migrateDataFormat(directories, { release: "0.2.0", steps: steps.slice(0, 1) });
  assert.deepEqual(await recorded(), { format: 2, release: "0.2.0" });
  for (const release of ["0.3.0", "0.3.1"]) await migrateDataFormat(directories, { release, steps });
  assert.deepEqual(applied, ["to 2", "to 3"]);
  assert.deepEqual(await recorded(), { format: 3, release: "0.3.0" });
  assert.deepEqual((await readdir(root)).toSorted(), ["format.json", "records"]);
});

test("a step that fails is applied again at the next start", async () => {
  await writeFile(join(directories.records, "galatea.db"), "");
  const broken: FormatStep = () => Promise.reject(new Error("disk"));
  await assert.rejects(migrateDataFormat(directories, { release: "0.3.0", steps: [steps[0]!, broken] }), /disk/);
  await migrateDataFormat(directories, { release: "0.3.0", steps });
  assert.deepEqual(applied, ["to 2", "to 2", "to 3"]);
});

test("a directory of a newer release is rejected with that release's name, and a file without a format is rejected", async () => {
  await migrateDataFormat(directories, { release: "0.3.0", steps });
  await assert.rejects(migrateDataFormat(directories, { release: "0.1.0", steps: [] }), {
    message:
      `the data directory '${root}' has format 3 since Galatea 0.3.0 opened it, and this release (0.1.0) reads formats up to 1: ` +
      "start Galatea 0.3.0 or newer, or choose another directory with --data",
  });
  assert.deepEqual(await recorded(), { format: 3, release: "0.3.0" });
  for (const text of ["", "{}", `{"format":0,"release":"0.1.0"}`]) {
    await writeFile(formatPath(directories), text);
    await assert.rejects(
      migrateDataFormat(directories, { release: "0.1.0" }),
      /does not say which format the data directory has: remove it if no release newer than 0\.1\.0 has opened/,
    );
  }
});
