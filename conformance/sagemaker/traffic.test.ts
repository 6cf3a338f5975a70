import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const traffic = fileURLToPath(new URL("traffic.py", import.meta.url));

test("no request fails while boto3 changes variants, weights and capacities and updates and rolls back an endpoint", async () => {
  await using platform = await ScriptedPlatform.open();
  const output = await platform.run(traffic, [], { proxy: true });
  assert(!output.includes("FAILED"), output);
});
