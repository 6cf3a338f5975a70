import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const program = fileURLToPath(new URL("algorithms.py", import.meta.url));
let platform: ScriptedPlatform;

before(async () => {
  platform = await ScriptedPlatform.open();
});
after(() => platform[Symbol.asyncDispose]());

/** Runs a phase. Both phases get the names of images from the SDK. */
async function run(phase: string): Promise<void> {
  const output = await platform.run(program, [phase], { proxy: true, environment: "sagemaker-v2" });
  assert(!output.includes("FAILED"), output);
}

test("boto3 deploys and invokes XGBoost, linear learner and SparkML by the names of their images", async () => {
  await run("boto3");
});

test("the sagemaker SDK deploys PipelineModels of SparkML with XGBoost and with multi-model linear learner", async () => {
  await run("sdk");
});
