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

test("XGBoost, linear learner and SparkML by the names of their images, with the real boto3", async () => {
  const output = await platform.run(program, ["boto3"], { proxy: true });
  assert(!output.includes("FAILED"), output);
});

test("the sagemaker SDK: PipelineModel of SparkML and XGBoost, and of SparkML and many linear learners", async () => {
  const output = await platform.run(program, ["sdk"], { proxy: true });
  assert(!output.includes("FAILED"), output);
});
