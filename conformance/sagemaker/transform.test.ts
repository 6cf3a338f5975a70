import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const program = fileURLToPath(new URL("transform.py", import.meta.url));
let platform: ScriptedPlatform;
const run = (phase: string) => platform.run(program, [phase], { proxy: true, environment: "sagemaker-v2" });

before(async () => {
  platform = await ScriptedPlatform.open();
  await run("deploy");
});
after(() => platform[Symbol.asyncDispose]());

test("transform jobs with boto3 and the SDK's Transformer wait, join, fail, stop, are listed and log", async () => {
  const output = await run("jobs");
  assert(!output.includes("FAILED"), output);
});

test("after kill -9 of the platform a transform job resumes, and finished objects are not processed again", async () => {
  await run("begin");
  await platform.killAndStartAgain();
  await run("resumed");
});
