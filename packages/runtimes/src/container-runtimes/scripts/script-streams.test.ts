import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { mayStream } from "./script-streams.ts";

test("a script may stream if its text contains `yield` or `stream`; only files inside the archive's code directory are read", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "streams-"));
  t.after(() => rm(directory, { recursive: true }));
  const code = join(directory, "code");
  await mkdir(join(code, "own"), { recursive: true });
  const write = (name: string, text: string) => writeFile(join(directory, name), text);
  const asks = (program: string | null) => mayStream([code], program);
  assert.equal(await asks(null), false);
  await write("code/inference.py", "def predict_fn(d, m):\n    return d\n");
  assert.equal(await asks(null), false);
  await write("code/inference.py", "def predict_fn(d, m):\n    yield d\n");
  assert.equal(await asks(null), true);
  await write("code/own/serve.py", "streams = True\n");
  assert.deepEqual([await asks("own/serve.py"), await asks("own.serve"), await asks("other.py")], [true, true, false]);
  await write("outside.py", "yield");
  assert.equal(await asks("../outside.py"), false);
  await symlink("/dev/zero", join(code, "endless.py"));
  assert.equal(await asks("endless.py"), false);
});
