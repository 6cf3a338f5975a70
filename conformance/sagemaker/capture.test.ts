import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const program = fileURLToPath(new URL("capture.py", import.meta.url));
let platform: ScriptedPlatform;

before(async () => {
  platform = await ScriptedPlatform.open();
});
after(() => platform[Symbol.asyncDispose]());

async function run(phase: string): Promise<void> {
  const output = await platform.run(program, [phase], { proxy: true });
  assert(!output.includes("FAILED"), output);
}

test("data capture and shadow variants with the real boto3 and the SDK's own classes: limits, records, metrics, logs", async () => {
  await run("mirrored");
});

test("after kill -9 of the platform what was captured is in whole files, and capturing goes on", async () => {
  await run("begin");
  await platform.killAndStartAgain();
  await run("killed");
});
