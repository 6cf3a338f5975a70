import assert from "node:assert/strict";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseRequirements, readRequirements } from "./requirements.ts";

test("a requirements.txt may contain package names with extras, versions and markers; comments are ignored", () => {
  const text =
    "# what it needs\nscipy>=1.16,<2  # newer\n\nuvicorn[standard] ~= 0.30\r\nfoo==1.0; python_version < '3.12'\n";
  assert.deepEqual(parseRequirements(text), [
    "scipy>=1.16,<2",
    "uvicorn[standard] ~= 0.30",
    "foo==1.0; python_version < '3.12'",
  ]);
});

for (const line of [
  "-r /etc/passwd",
  "--index-url=http://127.0.0.1:9/",
  "--extra-index-url http://x/",
  "-e .",
  "./local.whl",
  "/opt/ml/model/code/x.whl",
  "git+https://x.org/y.git",
  "pkg @ file:///etc/passwd",
  "https://x.org/y-1.0-py3-none-any.whl",
  "pkg==${AWS_SECRET_ACCESS_KEY}",
  "pkg==1 \\",
  "pkg --config-settings=x",
  "pkg\t-r x",
])
  test(`a requirements.txt line other than a package with its versions is rejected: ${line}`, () => {
    assert.throws(() => parseRequirements(`numpy\n${line}\n`), /requirements\.txt cannot be installed: line 2, /);
  });

test("parsing a requirements.txt line takes time linear in its length", () => {
  const line = `a${"-".repeat(60_000)}[${" ".repeat(3000)}`;
  assert.throws(() => parseRequirements(line), /line 1/);
});

test("a requirements.txt that is too long or a link to a device is rejected; a missing one means no packages", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "requirements-"));
  t.after(() => rm(directory, { recursive: true }));
  assert.deepEqual(await readRequirements([directory]), []);
  await symlink("/dev/zero", join(directory, "requirements.txt"));
  await assert.rejects(readRequirements([directory]), /it is not a file of at most 65536 bytes/);
  await rm(join(directory, "requirements.txt"));
  await writeFile(join(directory, "requirements.txt"), "# ".repeat(40_000));
  await assert.rejects(readRequirements([directory]), /it is not a file of at most 65536 bytes/);
});
