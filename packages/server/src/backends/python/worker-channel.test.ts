import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { hangMs } from "@galatea/base/core/eventually-fixture.ts";

test("no way of reading keeps a worker's buffer of a large frame for a small one behind it", async () => {
  const script = fileURLToPath(new URL("../../../python/channel_test.py", import.meta.url));
  await promisify(execFile)("python3", ["-B", script], { timeout: hangMs });
});
