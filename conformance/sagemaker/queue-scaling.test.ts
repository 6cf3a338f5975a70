import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const script = fileURLToPath(new URL("queue_scaling.py", import.meta.url));

test("an asynchronous endpoint scales from no instance to two and back with the policies of SageMaker's documentation", async () => {
  await using platform = await ScriptedPlatform.openFast(400);
  const output = await platform.run(script, []);
  assert(!output.includes("FAILED"), output);
});
