import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const serverless = fileURLToPath(new URL("serverless.py", import.meta.url));

test("boto3 creates and invokes serverless variants, which return to service after kill -9 of the platform", async () => {
  await using platform = await ScriptedPlatform.open();
  const output = await platform.run(serverless, ["create"]);
  assert(!output.includes("FAILED"), output);
  await platform.killAndStartAgain();
  const later = await platform.run(serverless, ["again"]);
  assert(!later.includes("FAILED"), later);
});
