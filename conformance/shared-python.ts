import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { cacheDirectory } from "./environments/index.ts";

/** The product's Python environment is made once for all suites: a data directory uses it by a link. */
export async function shareMadePython(data: string): Promise<void> {
  const environments = join(cacheDirectory(process.env), "server-data", "python");
  await mkdir(environments, { recursive: true });
  await mkdir(data, { recursive: true });
  await symlink(environments, join(data, "python"));
}
