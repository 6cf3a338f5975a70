import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory, ensureEnvironment, ensureFramework } from "../environments/index.ts";
import { ScriptedPlatform } from "../sagemaker/scripted-platform.ts";

const models = fileURLToPath(new URL("../../examples/serial/train.py", import.meta.url));
const program = fileURLToPath(new URL("../../examples/serial/serial_pipeline.py", import.meta.url));
let directory: string;
let platform: ScriptedPlatform;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-serial-"));
  const [sklearn, trees] = [
    await ensureFramework("sklearn"),
    await ensureEnvironment(cacheDirectory(process.env), "trees"),
  ];
  await promisify(execFile)(sklearn.python, [models, "sklearn", directory]);
  await promisify(execFile)(trees.python, [models, "xgboost", directory]);
  platform = await ScriptedPlatform.open();
});
after(async () => {
  await platform[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

test("a pipeline of scikit-learn, linear learner and XGBoost returns the results of the libraries, also with a multi-model linear learner", async () => {
  // The program compares the responses with the libraries' results, and prints its findings.
  const text = await platform.run(program, [directory], { proxy: true, environment: "sagemaker-v2" });
  for (const line of [
    /pipeline of three models: \[0\.\d+, /m,
    /batch transform: \[0\.\d+, /m,
    /targeted, reversed: \[/m,
    /^done$/m,
  ])
    assert.match(text, line);
});
