import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { create } from "tar";
import { temporaryDirectory, writeModels, type BenchModels } from "./servers.ts";

/** The content of an archive for a multi-model endpoint. */
export type Pack = BenchModels;

/** model.tar.gz, stored rather than compressed. */
export async function pack(models: Pack): Promise<Buffer> {
  await using directory = await temporaryDirectory();
  await writeModels(directory.path, models);
  // Awaited here, because the directory is removed at the end of this scope.
  return await packDirectory(directory.path);
}

/** The content of a model repository on disk. */
export async function packDirectory(directory: string): Promise<Buffer> {
  await using staging = await temporaryDirectory();
  const file = join(staging.path, "archive.tar");
  await create({ cwd: directory, file, portable: true }, await readdir(directory));
  return await promisify(gzip)(await readFile(file), { level: 0 });
}
