import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Writes the figures of a long run to bench/results, with date, commit and machine, and prints the path. */
export async function writeFigures(kind: string, figures: object): Promise<string> {
  const commit = await promisify(execFile)("git", ["rev-parse", "--short", "HEAD"]).then(
    ({ stdout }) => stdout.trim(),
    () => "unknown",
  );
  const date = new Date().toISOString();
  const directory = fileURLToPath(new URL("../bench/results/", import.meta.url));
  await mkdir(directory, { recursive: true });
  const path = join(directory, `${kind}-${date.slice(0, 19).replaceAll(":", "")}.json`);
  const machine = { cpu: cpus()[0]?.model ?? "", cores: cpus().length, memoryBytes: totalmem(), node: process.version };
  await writeFile(path, `${JSON.stringify({ kind, date, commit, machine, ...figures }, null, 1)}\n`);
  return path;
}
