import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const program = join(import.meta.dirname, "../bin/galatea.js");

test("galatea in a checkout without its packages says in one sentence what to run, and where", async () => {
  const root = await mkdtemp(join(tmpdir(), "galatea-bin-"));
  try {
    await mkdir(join(root, "packages/galatea/src"), { recursive: true });
    await cp(program, join(root, "packages/galatea/bin/galatea.js"), { recursive: true });
    await writeFile(join(root, "package.json"), `{"type":"module"}`);
    await writeFile(join(root, "packages/galatea/src/main.ts"), `import "koffi";`);
    const { status, stderr, stdout } = spawnSync(
      process.execPath,
      [join(root, "packages/galatea/bin/galatea.js"), "--version"],
      {
        encoding: "utf8",
      },
    );
    assert.deepEqual([status, stdout], [1, ""]);
    assert.match(stderr, /^galatea's packages are not installed yet: run `npm ci --ignore-scripts` in .*\n$/);
    assert.equal(stderr.split("\n").length, 2);
    assert.ok(stderr.includes(root), stderr);
  } finally {
    await rm(root, { recursive: true });
  }
});

test("galatea with its packages starts", () => {
  const { status, stdout } = spawnSync(process.execPath, [program, "--version"], { encoding: "utf8" });
  assert.deepEqual([status, stdout.split(" ")[0]], [0, "galatea"]);
});
