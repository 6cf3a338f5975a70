import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory, ensureEnvironment, ensureFramework } from "../environments/index.ts";
import { ScriptedPlatform } from "../sagemaker/scripted-platform.ts";

const models = fileURLToPath(new URL("serial_models.py", import.meta.url));
const program = fileURLToPath(new URL("serial_pipeline.py", import.meta.url));
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

test("scikit-learn, linear learner and XGBoost are a pipeline, and answer as the libraries do; a linear learner of many is targeted", async () => {
  await platform.run(program, [directory], { proxy: true });
});
