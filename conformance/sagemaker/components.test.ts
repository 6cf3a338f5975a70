import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const components = fileURLToPath(new URL("components.py", import.meta.url));

test("boto3 creates, updates and invokes inference components, which return to service after kill -9 of the platform", async () => {
  await using platform = await ScriptedPlatform.open();
  const output = await platform.run(components, ["create"]);
  assert(!output.includes("FAILED"), output);
  await platform.killAndStartAgain();
  const later = await platform.run(components, ["again"]);
  assert(!later.includes("FAILED"), later);
});
