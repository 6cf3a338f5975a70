import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { cacheDirectory } from "./environments/index.ts";

/** The product's Python environment, and those of frameworks, are made once for all suites: a data directory uses them by links. */
export async function shareMadePython(data: string): Promise<void> {
  await shareMade(data, ["python", "frameworks"]);
}

/** Links the environments of packages that models ask for, too. Installing one takes pip most of a minute on a busy machine. */
export async function shareMadePackages(data: string): Promise<void> {
  await shareMade(data, ["python-packages"]);
}

async function shareMade(data: string, names: readonly string[]): Promise<void> {
  await mkdir(data, { recursive: true });
  for (const name of names) {
    const environments = join(cacheDirectory(process.env), "server-data", name);
    await mkdir(environments, { recursive: true });
    await symlink(environments, join(data, name));
  }
}
