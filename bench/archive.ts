import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { create } from "tar";
import { writeModels, type BenchModels } from "./servers.ts";

/** What an archive of a multi-model endpoint holds. */
export type Pack = BenchModels;

/** model.tar.gz, stored rather than compressed. */
export async function pack(models: Pack): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), "galatea-bench-archive-"));
  try {
    await writeModels(directory, models);
    const file = join(directory, "archive.tar");
    await create({ cwd: directory, file, portable: true }, Object.keys(models));
    return await promisify(gzip)(await readFile(file), { level: 0 });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
