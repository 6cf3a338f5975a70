import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ensureFramework } from "../environments/index.ts";
import { ScriptedPlatform } from "../sagemaker/scripted-platform.ts";

const sessions = fileURLToPath(new URL("script_sessions.py", import.meta.url));

test("stateful sessions with the real boto3: opened, continued, streamed, closed, over", async () => {
  await ensureFramework("sklearn");
  await using platform = await ScriptedPlatform.open();
  const output = await platform.run(sessions, [], { proxy: true });
  assert(!output.includes("FAILED"), output);
});
