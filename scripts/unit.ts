import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { testTimeoutMs } from "../packages/base/src/core/eventually-fixture.ts";
import { compileCache, root } from "./source-tree.ts";

/**
 * Runs the unit tests in one process more than there are cores, because many tests wait for processes and clocks.
 * (Node's runner leaves one core unused, which is half of two.) Compiled code is kept between runs. Files that tests
 * leave in the temporary directory fail the run. With paths of packages (`packages/server`) it runs only their tests.
 */
const chosen = process.argv.slice(2).filter((each) => each.startsWith("packages/"));
const options = process.argv.slice(2).filter((each) => !each.startsWith("packages/"));
// Short, because paths of sockets are below it.
const temporary = mkdtempSync(join(tmpdir(), "u-"));
// World-readable like the system's temporary directory, because some tests run as another user.
chmodSync(temporary, 0o1777);
const { status, signal } = spawnSync(
  process.execPath,
  [
    "--test",
    // The limit exceeds a test's wait for a condition, so that the wait fails first, with the text of the condition.
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
