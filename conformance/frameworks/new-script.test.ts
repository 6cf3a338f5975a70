import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ensureFramework } from "../environments/index.ts";
import { ScriptedPlatform } from "../sagemaker/scripted-platform.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));

test("the project of galatea new --script deploys an endpoint with boto3 and gets predictions", async () => {
  await using platform = await ScriptedPlatform.open();
  await ensureFramework("sklearn");
  const folder = join(platform.directory, "first");
  const { status, stderr } = spawnSync(process.execPath, [main, "new", folder, "--script"], { encoding: "utf8" });
  assert.deepEqual([status, stderr], [0, ""]);
  const printed = await platform.run(join(folder, "deploy.py"), []);
  assert.match(printed, /^endpoint first-script-[\d-]+ is InService\n\[2\.5, 7\.0\]\n$/);
});
