import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ensureFramework } from "../environments/index.ts";
import { ScriptedPlatform } from "../sagemaker/scripted-platform.ts";

const failures = fileURLToPath(new URL("../sagemaker/failures.py", import.meta.url));

test("an endpoint whose script raises has the exception in its FailureReason", async () => {
  await using platform = await ScriptedPlatform.open();
  await ensureFramework("sklearn");
  await platform.run(failures, ["scripts"]);
});
