import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

test("a worker's channel keeps no large buffer for small frames, and pauses polling while another process needs the core", async () => {
  const script = fileURLToPath(new URL("../../../python/channel_test.py", import.meta.url));
  await promisify(execFile)("python3", ["-B", script], { timeout: testTimeoutMs });
});
