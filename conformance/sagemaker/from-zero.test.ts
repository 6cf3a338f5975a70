import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const fromZero = fileURLToPath(new URL("from_zero.py", import.meta.url));

test("an inference component goes to no copies by itself and wakes for requests, with the real boto3 on a fast clock", async () => {
  await using platform = await ScriptedPlatform.openFast(1000);
  await platform.run(fromZero, []);
});
