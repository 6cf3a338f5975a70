import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const waiters = fileURLToPath(new URL("waiters.py", import.meta.url));

test("boto3's waiters for what is over within one call, and for what takes longer than a call is held", async () => {
  await using platform = await ScriptedPlatform.open();
  await platform.run(waiters, []);
});
