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

test("the sagemaker SDK: SKLearnModel.deploy and predict, with a script that lies in S3; errors with the script's trace", async () => {
  await run("sklearn");
});

test("the sagemaker SDK: PyTorchModel.deploy and predict, with a script in the archive, and by the container's defaults", async () => {
  await run("pytorch");
});

test("the sagemaker SDK: XGBoostModel.deploy and predict, and a MultiDataModel of it", async () => {
  await run("xgboost");
});

test("the sagemaker SDK: MultiDataModel of archives with one script for all, and with scripts of their own", async () => {
  await run("many");
});
