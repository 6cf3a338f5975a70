import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { cacheDirectory, ensureEnvironment } from "../conformance/environments/index.ts";

/**
 * Formats the repository's Python and applies the linter's automatic fixes:
 *   node scripts/ruff.ts
 * `ruff.test.ts` checks the rules of `ruff.toml`.
 */
export async function ruff(args: readonly string[]): Promise<{ readonly status: number; readonly output: string }> {
  const { python } = await ensureEnvironment(cacheDirectory(process.env), "ruff");
  const root = join(import.meta.dirname, "..");
  const { status, stdout, stderr } = spawnSync(python, ["-m", "ruff", ...args, "."], { cwd: root, encoding: "utf8" });
  return { status: status ?? 1, output: `${stdout}${stderr}` };
}

if (import.meta.main) {
  for (const args of [["check", "--fix"], ["format"]]) {
    const { status, output } = await ruff(args);
    process.stdout.write(output);
    if (status !== 0) process.exitCode = status;
  }
}
