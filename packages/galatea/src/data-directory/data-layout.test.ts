import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { dataDirectories } from "./directories.ts";
import { checkDataLayout } from "./data-layout.ts";

const location = mkdtempSync(join(tmpdir(), "galatea-layout-"));
after(() => rmSync(location, { recursive: true, force: true }));

const makers = {
  directory: (path: string) => mkdirSync(path),
  file: (path: string) => writeFileSync(path, ""),
  fifo: (path: string) => execFileSync("mkfifo", [path]),
  link: (path: string) => symlinkSync(join(location, "nothing"), path),
};
/** Creates a data directory in which `maker` has created the entry at `path`. */
function dataWith(path: string, maker: keyof typeof makers): string {
  const root = mkdtempSync(join(location, "data-"));
  mkdirSync(dirname(join(root, path)), { recursive: true });
  makers[maker](join(root, path));
  return root;
}

const cases = [
  ["records/galatea.db", "directory", "a directory, and Galatea needs a file there"],
  ["records/galatea.db", "fifo", "neither a file nor a directory, and Galatea needs a file there"],
  ["records/galatea.db.commits", "directory", "a directory, and Galatea needs a file there"],
  ["records/metrics.db", "directory", "a directory, and Galatea needs a file there"],
  ["records/lock", "directory", "a directory, and Galatea needs a file there"],
  ["snapshots", "file", "a file, and Galatea needs a directory there"],
  ["objects/tmp", "file", "a file, and Galatea needs a directory there"],
  ["objects/buckets", "file", "a file, and Galatea needs a directory there"],
  ["objects", "file", "a file, and Galatea needs a directory there"],
  ["logs", "link", "neither a file nor a directory, and Galatea needs a directory there"],
  ["credentials", "directory", "a directory, and Galatea needs a file there"],
  ["format.json", "directory", "a directory, and Galatea needs a file there"],
] as const;

for (const [path, maker, found] of cases) {
  test(`a start over a data directory whose ${path} is a ${maker} is rejected with what to do`, async () => {
    const root = dataWith(path, maker);
    await assert.rejects(checkDataLayout(dataDirectories(root, {})), {
      message: `'${join(root, path)}' is ${found}: move it away, or choose another directory with --data`,
    });
  });
}

for (const path of ["records/galatea.db", "credentials"]) {
  test(`galatea up over a directory ${path} reports it in one line and exits with 1`, () => {
    const main = fileURLToPath(new URL("../main.ts", import.meta.url));
    const root = dataWith(path, "directory");
    const { status, stderr } = spawnSync(process.execPath, [main, "up", "--port", "0", "--data", root], {
      encoding: "utf8",
    });
    assert.equal(status, 1);
    const sentence = `galatea up: '${join(root, path)}' is a directory, and Galatea needs a file there: move it away, or choose another directory with --data`;
    assert.equal(stderr.trim().split("\n").at(-1), sentence);
  });
}

test("a new data directory, and one whose directories are links, are accepted", async () => {
  await checkDataLayout(dataDirectories(join(location, "new"), {}));
  const root = mkdtempSync(join(location, "data-"));
  symlinkSync(location, join(root, "frameworks"));
  await checkDataLayout(dataDirectories(root, {}));
});
