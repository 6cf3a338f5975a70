import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const program = fileURLToPath(new URL("capture.py", import.meta.url));

test("data capture and shadow variants work with boto3 and the SDK's classes; after kill -9 of the platform files are complete and capture continues", async () => {
  await using platform = await ScriptedPlatform.open();
  const run = async (phase: string) => {
    const output = await platform.run(program, [phase], { proxy: true, environment: "sagemaker-v2" });
    assert(!output.includes("FAILED"), output);
  };
  await run("mirrored");
  await run("begin");
  await platform.killAndStartAgain();
  await run("killed");
});
