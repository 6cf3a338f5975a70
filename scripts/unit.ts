import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";

/**
 * The unit tests, in as many processes as there are processors, and two at least: many tests wait for processes and clocks of their
 * own. (Node's runner leaves one processor out, which on two is half of them.) Compiled code is kept between runs.
 */
const root = join(import.meta.dirname, "..");
const { status, signal } = spawnSync(
  process.execPath,
  [
    "--test",
    `--test-concurrency=${Math.max(2, availableParallelism())}`,
    "server/src/**/*.test.ts",
    "scripts/*.test.ts",
    ...process.argv.slice(2),
  ],
  {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, NODE_COMPILE_CACHE: join(root, "node_modules/.cache/compiled") },
  },
);
process.exitCode = signal === null ? (status ?? 1) : 1;
