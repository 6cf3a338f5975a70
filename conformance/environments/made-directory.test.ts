import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createdDirectory } from "./created-directory.ts";

const never = { signal: new AbortController().signal };

async function place(t: TestContext): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), "galatea-made-"));
  t.after(() => rm(parent, { recursive: true, force: true }));
  return join(parent, "made");
}

test("only one of several callers creates a directory, and all of them get the result of its maker", async (t) => {
  const directory = await place(t);
  const started = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<void>();
  const first = createdDirectory(directory, never, async () => {
    await mkdir(directory);
    started.resolve();
    await finished.promise;
    return "the first";
  });
  await started.promise;
  const second = () => Promise.resolve("the second");
  await assert.rejects(createdDirectory(directory, { signal: AbortSignal.timeout(300) }, second), {
    name: "AbortError",
  });
  const waiting = createdDirectory(directory, never, second);
  finished.resolve();
  assert.deepEqual(await Promise.all([first, waiting, createdDirectory(directory, never, second)]), [
    "the first",
    "the first",
    "the first",
  ]);
});

test("a directory without complete.json is emptied and created again", async (t) => {
  const directory = await place(t);
  await mkdir(directory);
  await writeFile(join(directory, "half"), "");
  await createdDirectory(directory, never, () => mkdir(directory));
  assert.deepEqual(await readdir(directory), ["complete.json"]);
});
