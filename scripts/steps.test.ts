import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import type { Step } from "./steps.ts";

const node = (script: string) => [process.execPath, "-e", script];

/** Runs steps in a process of their own, as `npm test` does. */
async function run(t: TestContext, steps: readonly Step[], files: Readonly<Record<string, string>> = {}) {
  const directory = await mkdtemp(join(tmpdir(), "steps-test-"));
  t.after(() => rm(directory, { recursive: true }));
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content);
  const program = `import { runSteps } from "${join(import.meta.dirname, "steps.ts")}";
    const steps = ${JSON.stringify(steps)};
    for (const { lanes = [] } of steps)
      for (const task of lanes.flat())
        task.run = () => (task.rejects ? Promise.reject(new Error(task.rejects)) : Promise.resolve());
    process.exitCode = await runSteps(steps);`;
  // Without this, the inner test runner assumes that it is a file of the outer one.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { cwd: directory, env });
  const exited = new Promise((resolve) => child.once("close", resolve));
  const [stdout, stderr, status] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  return { stdout, stderr, status };
}

test("every step runs when earlier ones fail, and the report at the end says which failed and why", async (t) => {
  const rejecting = {
    name: "environments",
    lanes: [[{ name: "one", rejects: "no package index" }, { name: "two" }], [{ name: "three" }]],
  } as unknown as Step;
  const { stdout, stderr, status } = await run(t, [
    { name: "first", command: node("process.exit(3)") },
    rejecting,
    { name: "second", command: node("process.kill(process.pid, 'SIGKILL')") },
    { name: "third", command: ["no-such-program"] },
    { name: "last", command: node("console.log('the last step ran')") },
  ]);
  assert.match(stdout, /== first[^]*== second[^]*== third[^]*== last\nthe last step ran/);
  assert.match(stdout, /\n== the slowest of 7 steps and test files\n( +\d+\.\d s {2}\w+\n){7}$/);
  assert.ok(
    stderr.endsWith(
      "\n4 of 5 steps failed:\n  first: exit status 3\n  environments: 1 failed\n    one: no package index\n" +
        "  second: ended by SIGKILL\n  third: spawnSync no-such-program ENOENT\n",
    ),
    stderr,
  );
  assert.equal(status, 1);
});

test("the report names each test that failed, and the files that ended before their tests", async (t) => {
  const { stdout, stderr, status } = await run(
    t,
    [
      {
        name: "unit tests",
        command: [process.execPath, "--test"],
        testFiles: ["one.test.mjs", "two.test.mjs", "dies.test.mjs"],
      },
    ],
    {
      "one.test.mjs": `import { test } from "node:test";
        test("a sum is right", () => {});
        test("outer", async (t) => { await t.test("an inner sum is wrong", () => { throw new Error("no"); }); });`,
      "two.test.mjs": `import { test } from "node:test"; test("a file is there", () => { throw new Error("no"); });`,
      "dies.test.mjs": `process.exit(9);`,
    },
  );
  assert.match(stdout, /a sum is right/);
  const table = stdout.slice(stdout.indexOf("\n== the slowest of 3 steps and test files\n"));
  assert.deepEqual([...table.matchAll(/ s {2}(.*)\n/g)].map(([, name = ""]) => name).toSorted(), [
    "dies.test.mjs",
    "one.test.mjs",
    "two.test.mjs",
  ]);
  const report = stderr.slice(stderr.indexOf("1 of 1 steps failed:\n")).split("\n").toSorted();
  assert.deepEqual(report, [
    "",
    "    dies.test.mjs: the file failed outside its tests",
    "    one.test.mjs: an inner sum is wrong",
    "    two.test.mjs: a file is there",
    "  unit tests: exit status 1",
    "1 of 1 steps failed:",
  ]);
  assert.equal(status, 1);
});

test("nothing is reported when every step passes", async (t) => {
  const passed = await run(t, [{ name: "only", command: node("") }]);
  assert.deepEqual(passed, { stdout: "\n== only\n", stderr: "", status: 0 });
});
