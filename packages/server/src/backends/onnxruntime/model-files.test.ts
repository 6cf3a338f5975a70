import assert from "node:assert/strict";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ModelFileIndex } from "./model-files.ts";

test("a directory entry whose file is missing is ignored, as when it is deleted during the listing", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "galatea-model-files-"));
  t.after(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, "model.onnx"), "graph");
  const before = await new ModelFileIndex().find(directory, "model.onnx", "one");
  await symlink("nowhere", join(directory, "model.onnx.new"));
  assert.deepEqual(await new ModelFileIndex().find(directory, "model.onnx", "one"), before);
});
