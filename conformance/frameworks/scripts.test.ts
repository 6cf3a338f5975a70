import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureFramework } from "../environments/index.ts";
import { ScriptedPlatform } from "../sagemaker/scripted-platform.ts";

const models = fileURLToPath(new URL("script_models.py", import.meta.url));
const program = fileURLToPath(new URL("script_containers.py", import.meta.url));
let directory: string;
let platform: ScriptedPlatform;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-scripts-"));
  platform = await ScriptedPlatform.open();
  for (const name of ["sklearn", "pytorch", "xgboost"] as const) {
    const { python } = await ensureFramework(name);
    await promisify(execFile)(python, [models, name, directory]);
  }
});
after(async () => {
  await platform[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

const run = (phase: string) => platform.run(program, [phase, directory], { proxy: true, environment: "sagemaker-v2" });

test("the sagemaker SDK deploys a SKLearnModel with a script in S3, predicts, and gets errors with the script's traceback", async () => {
  await run("sklearn");
});

test("the sagemaker SDK deploys PyTorchModels, with a script in the archive and with the container's defaults, and predicts", async () => {
  await run("pytorch");
});

test("the sagemaker SDK deploys an XGBoostModel and a MultiDataModel of it, and predicts", async () => {
  await run("xgboost");
});

test("the sagemaker SDK deploys MultiDataModels with one script for all archives and with one script in each", async () => {
  await run("many");
});
