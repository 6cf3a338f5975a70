import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createTritonLog } from "./triton-log.ts";

test("a log file whose directory vanishes loses lines until the directory is back; a file that cannot be opened at the start is an error", async () => {
  const root = mkdtempSync(join(tmpdir(), "galatea-log-"));
  const directory = join(root, "below");
  const file = join(directory, "server.log");
  const shown = { verbose: false, info: true, warning: true, error: true, pid: 1, infoTo: "stderr" } as const;
  const open = () => createTritonLog({ ...shown, format: "default", file });
  assert.throws(open, /ENOENT/);
  mkdirSync(directory);
  const log = open();
  log.info("first");
  assert.equal(await log.written(10_000), true);
  assert.match(readFileSync(file, "utf8"), /\] "first"\n$/);
  rmSync(directory, { recursive: true });
  log.info("lost, and said so on stderr");
  assert.equal(await log.written(10_000), true);
  mkdirSync(directory);
  log.info("again");
  assert.equal(await log.written(10_000), true);
  assert.match(readFileSync(file, "utf8"), /^\S+ \S+ 1 galatea\] "again"\n$/);
  rmSync(root, { recursive: true });
});
