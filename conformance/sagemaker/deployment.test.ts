import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const workflow = fileURLToPath(new URL("workflow.py", import.meta.url));

test("boto3 deploys a multi-model endpoint, invokes it and reads errors, metrics and logs, also after kill -9 of the platform", async () => {
  await using platform = await ScriptedPlatform.open();
  const run = async (phase: string) => {
    const output = await platform.run(workflow, [phase], { proxy: true });
    assert(!output.includes("FAILED"), output);
  };
  await run("deploy");
  await platform.killAndStartAgain();
  await run("after-restart");
  await run("clean");
});
