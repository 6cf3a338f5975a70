import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

test("the worker's files do not import each other in a circle, and every imported name exists", async () => {
  const script = fileURLToPath(new URL("../../../python/imports_test.py", import.meta.url));
  await promisify(execFile)("python3", ["-B", script]);
});
