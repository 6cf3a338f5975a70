import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const traffic = fileURLToPath(new URL("traffic.py", import.meta.url));

test("variants, weights, capacities, updates, roll-backs and alarms with the real boto3, while a client asks all the time", async () => {
  await using platform = await ScriptedPlatform.open();
  const output = await platform.run(traffic, [], { proxy: true });
  assert(!output.includes("FAILED"), output);
});
