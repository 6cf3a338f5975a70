import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const failures = fileURLToPath(new URL("failures.py", import.meta.url));

test("the errors that boto3 gets for rejected resources say what to do", async () => {
  await using platform = await ScriptedPlatform.open();
  await platform.run(failures, []);
});
