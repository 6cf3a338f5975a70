import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { asDiskError } from "@galatea/base";
import { programWords } from "../shell-words.ts";
import type { NewOptions } from "./new-flags.ts";

const templatesDirectory = fileURLToPath(new URL("../../../templates", import.meta.url));

/**
 * Runs `galatea new`, which writes a first model to a new folder and prints the commands that run it. Resolves with 1
 * if the folder exists.
 */
export async function newRepository({ path, template }: NewOptions): Promise<number> {
  try {
    await mkdir(path);
    await copyFiles(join(templatesDirectory, template.folder), path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    const reason =
      code === "EEXIST" ? `'${path}' exists; choose another name` : (asDiskError(error, `'${path}'`) as Error).message;
    process.stderr.write(`galatea new: ${reason}\n`);
    return 1;
  }
  const commands = template.next(path, programWords(process.env)).map((command) => `  ${command}\n`);
  process.stdout.write(
    `'${path}' has ${template.about}. Next, with each server in its own shell:\n\n${commands.join("")}`,
  );
  return 0;
}

/** Copies the contents of files but not their modes, because the files of an installation may be read-only. */
async function copyFiles(from: string, to: string): Promise<void> {
  for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const source = join(entry.parentPath, entry.name);
    const target = join(to, relative(from, source));
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, await readFile(source));
  }
}
