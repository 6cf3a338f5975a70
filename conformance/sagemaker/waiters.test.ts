import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const waiters = fileURLToPath(new URL("waiters.py", import.meta.url));

test("boto3's waiters finish for changes that end during one Describe call, and for longer ones", async () => {
  await using platform = await ScriptedPlatform.open();
  await platform.run(waiters, []);
});
