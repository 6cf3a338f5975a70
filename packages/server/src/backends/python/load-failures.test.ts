import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test } from "node:test";
import { header, openFixture } from "./python-fixture.ts";

const models = `${header}class TritonPythonModel:\n    def execute(self, requests):\n        pass\n`;

test("the error for a missing module says how to add its package, and names the model's line", async () => {
  await using fixture = await openFixture();
  const imports = ["import a_module_nobody_has\n", "import numpy.nowhere\n"];
  for (const line of imports) {
    await assert.rejects(fixture.load("misses", line + models), {
      code: "INTERNAL",
      message:
        /^ModuleNotFoundError: No module named '[\w.]+'\. Add its package with --python-packages, of an endpoint with GALATEA_PYTHON_PACKAGES .*`galatea model add` sets up\.\n\nAt:\n {2}\S+misses\/1\/model\.py\(1\): <module>\n$/,
    });
  }
  const late = models.replace("def execute", "def initialize(self, args):\n        import nowhere\n    def execute");
  await assert.rejects(fixture.load("late", late), {
    message: /'nowhere'\. Add its package .*model\.py\(5\): initialize/s,
  });
});

test("a syntax error names the model's file and line, also of what the model imports", async () => {
  await using fixture = await openFixture();
  await assert.rejects(fixture.load("wrong", `x = 1\ndef f(\n${models}`), {
    message: /^SyntaxError: '\(' was never closed \(model\.py, line 2\)$/,
  });
  const model = await fixture.source("imports", `from . import helper\n${models}`);
  await writeFile(join(model.source.versionDirectory, "helper.py"), "x = 1\ny = (\n");
  await assert.rejects(fixture.loadWritten(model), {
    message: /^SyntaxError: .*\(helper\.py, line 2\)\n\nAt:\n {2}\S+imports\/1\/model\.py\(1\): <module>\n$/,
  });
});

test("a script's syntax error is located in the script, not where it is imported", async () => {
  const directory = await mkdtemp(join(tmpdir(), "galatea-script-"));
  try {
    await writeFile(join(directory, "inference.py"), "x = 1\ny = (\n");
    const code = `
import sys
sys.path[:0] = sys.argv[1:]
from galatea_worker import failures
from galatea_frameworks.toolkit import script
try:
    script.Script("inference.py", None, None)
except SyntaxError as error:
    print(failures.describe(error))
`;
    const python = fileURLToPath(new URL("../../../python", import.meta.url));
    const { stdout } = await promisify(execFile)("python3", ["-c", code, python, directory]);
    const [what, , at, innermost] = stdout.split("\n");
    assert.deepEqual(
      [what, at, innermost],
      ["SyntaxError: '(' was never closed (inference.py, line 2)", "At:", `  ${directory}/inference.py(2): <module>`],
    );
    assert.doesNotMatch(stdout, /galatea_frameworks/);
  } finally {
    await rm(directory, { recursive: true });
  }
});
