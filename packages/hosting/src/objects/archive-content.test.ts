import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { SharedFileWriter } from "./archive-content.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-archive-content-"));
after(() => rmSync(root, { recursive: true, force: true }));

test("a shared file that is deleted while an archive with the same bytes is unpacked is copied from its open descriptor", () => {
  const contents = join(root, "contents");
  mkdirSync(contents);
  const bytes = randomBytes(600_000);
  const written = (path: string, beforeItEnds: () => void) => {
    const writer = new SharedFileWriter(contents, path, bytes.byteLength);
    writer.write(bytes);
    beforeItEnds();
    return writer.finish();
  };
  const first = join(root, "first");
  const shared = written(first, () => {});
  assert.equal(statSync(first).nlink, 2);
  const collected = () => rmSync(join(contents, String(bytes.byteLength)), { recursive: true });
  const second = join(root, "second");
  assert.deepEqual(written(second, collected), shared);
  assert.deepEqual([statSync(second).nlink, statSync(second).mode & 0o777], [1, 0o444]);
  assert.ok(readFileSync(second).equals(bytes));
  assert.deepEqual(readdirSync(contents), []);
});
