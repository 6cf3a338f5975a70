import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { cacheDirectory } from "./environments/index.ts";

/** The product's Python environment, and those of frameworks, are created once for all suites; a data directory links to them. */
export async function shareMadePython(data: string): Promise<void> {
  await shareMade(data, ["python", "frameworks"]);
}

/** Also links the environments of packages that models request. An installation takes pip most of a minute on a busy machine. */
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
