import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const models = fileURLToPath(new URL("many_models.py", import.meta.url));

test("boto3 invokes many models on two instances, and after kill -9 of the platform they are still loaded", async () => {
  await using platform = await ScriptedPlatform.open();
  const output = await platform.run(models, ["create"]);
  assert(!output.includes("FAILED"), output);
  await platform.killAndStartAgain("same port");
  const later = await platform.run(models, ["again"]);
  assert(!later.includes("FAILED"), later);
});
