import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { cacheDirectory } from "./environments/index.ts";

/** The product's Python environment, and those of frameworks, are made once for all suites: a data directory uses them by links. */
export async function shareMadePython(data: string): Promise<void> {
  await mkdir(data, { recursive: true });
  for (const name of ["python", "frameworks"]) {
    const environments = join(cacheDirectory(process.env), "server-data", name);
    await mkdir(environments, { recursive: true });
    await symlink(environments, join(data, name));
  }
}
