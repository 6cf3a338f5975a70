import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const waiters = fileURLToPath(new URL("waiters.py", import.meta.url));

test("boto3's waiters for what takes longer than boto3 reads without a byte, beside a dashboard with their key", async () => {
  await using platform = await ScriptedPlatform.open();
  await platform.run(waiters, []);
});
