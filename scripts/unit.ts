import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { testTimeoutMs } from "../packages/base/src/core/eventually-fixture.ts";
import { compileCache, root } from "./source-tree.ts";

/**
 * The unit tests, in one process more than there are processors: many tests wait for processes and clocks of their own. (Node's runner
 * leaves one processor out, which on two is half of them.) Compiled code is kept between runs. What they leave in the temporary directory
 * fails the run. With paths of packages (`packages/server`) it runs only theirs.
 */
const chosen = process.argv.slice(2).filter((each) => each.startsWith("packages/"));
const options = process.argv.slice(2).filter((each) => !each.startsWith("packages/"));
// Short: the names of sockets lie below it.
const temporary = mkdtempSync(join(tmpdir(), "u-"));
// World-readable like the system's temporary directory, because some tests run as another user.
chmodSync(temporary, 0o1777);
const { status, signal } = spawnSync(
  process.execPath,
  [
    "--test",
    // Longer than a test waits for a condition, whose text it then fails with.
    `--test-timeout=${testTimeoutMs + 60_000}`,
    `--test-concurrency=${availableParallelism() + 1}`,
    ...options,
    ...(chosen.length > 0 ? chosen : ["packages/*"]).map((path) => `${path}/{src,test}/**/*.test.ts`),
    ...(chosen.length > 0 ? [] : ["scripts/*.test.ts"]),
  ],
  {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache, TMPDIR: temporary },
  },
);
const left = readdirSync(temporary);
rmSync(temporary, { recursive: true, force: true });
if (left.length > 0) process.stderr.write(`left in the temporary directory: ${left.join(" ")}\n`);
process.exitCode = signal === null && left.length === 0 ? (status ?? 1) : 1;
