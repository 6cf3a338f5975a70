import { cp, link, mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

export function tenantName(index: number): string {
  return `tenant-${String(index + 1).padStart(2, "0")}`;
}

const linkedAboveBytes = 1024 * 1024;

/**
 * One tenant's model repository: the shared models (large files as hard links) and one file of its own, so that every archive
 * differs while the weights in it are the same bytes. Gives the directory that it was staged in.
 */
export async function stageTenant(repository: string, staging: string, tenant: string): Promise<string> {
  await rm(staging, { recursive: true, force: true });
  for (const each of await readdir(repository, { recursive: true, withFileTypes: true })) {
    const from = join(each.parentPath, each.name);
    const to = join(staging, from.slice(repository.length));
    if (each.isDirectory()) await mkdir(to, { recursive: true });
    else {
      await mkdir(dirname(to), { recursive: true });
      const { size } = await stat(from);
      await (size > linkedAboveBytes ? link(from, to) : cp(from, to));
    }
  }
  await writeFile(join(staging, "sentence_embedding", "1", "tenant.txt"), `${tenant}\n`);
  return staging;
}
