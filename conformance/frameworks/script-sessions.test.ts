import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ensureFramework } from "../environments/index.ts";
import { ScriptedPlatform } from "../sagemaker/scripted-platform.ts";

const sessions = fileURLToPath(new URL("script_sessions.py", import.meta.url));

test("boto3 opens, continues, streams in and closes stateful sessions of a script, and a closed session is rejected", async () => {
  await ensureFramework("sklearn");
  await using platform = await ScriptedPlatform.open();
  const output = await platform.run(sessions, [], { proxy: true });
  assert(!output.includes("FAILED"), output);
});
