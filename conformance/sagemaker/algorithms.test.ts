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

/** Both phases take the names of images from the SDK. */
async function run(phase: string): Promise<void> {
  const output = await platform.run(program, [phase], { proxy: true, environment: "sagemaker-v2" });
  assert(!output.includes("FAILED"), output);
}

test("XGBoost, linear learner and SparkML by the names of their images, with the real boto3", async () => {
  await run("boto3");
});

test("the sagemaker SDK: PipelineModel of SparkML and XGBoost, and of SparkML and many linear learners", async () => {
  await run("sdk");
});
