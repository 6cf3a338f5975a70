import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const failures = fileURLToPath(new URL("failures.py", import.meta.url));

test("what cannot be created says what to do, with the real boto3", async () => {
  await using platform = await ScriptedPlatform.open();
  await platform.run(failures, []);
});
