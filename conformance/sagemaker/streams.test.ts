import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const streams = fileURLToPath(new URL("streams.py", import.meta.url));

test("answers in parts with the real boto3: tokens of a decoupled model, a client that leaves, a container that dies", async () => {
  await using platform = await ScriptedPlatform.open();
  const output = await platform.run(streams, [platform.directory], { proxy: true });
  assert(!output.includes("FAILED"), output);
});
