import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const fromZero = fileURLToPath(new URL("from_zero.py", import.meta.url));

test("an idle inference component scales in to zero copies and scales out for a request", async () => {
  await using platform = await ScriptedPlatform.openFast(1000);
  await platform.run(fromZero, []);
});
