import { readFile, stat } from "node:fs/promises";
import { join, normalize } from "node:path";

const scriptBytesMax = 4 * 1024 * 1024;
const programDefault = "inference.py";

/**
 * Returns whether a script may send responses in chunks: its text contains `yield`, or a word with `stream` in it. Its model is then
 * decoupled, which costs small responses one message more. A script without these words that returns an iterator has its response sent as
 * a whole, with a line in its log. `program`: the value of SAGEMAKER_PROGRAM; null for the toolkit's default.
 */
export async function mayStream(directories: readonly string[], program: string | null): Promise<boolean> {
  const name = program === null || program === "" ? programDefault : program;
  const file = normalize(name.endsWith(".py") ? name : `${name.replaceAll(".", "/")}.py`);
  // A script outside of the directory is never found, and no other file is read.
  if (file.startsWith("..") || file.startsWith("/")) return false;
  for (const directory of directories) {
    const path = join(directory, file);
    const found = await stat(path).catch(() => null);
    if (found === null) continue;
    // A link to a device has no end.
    if (!found.isFile() || found.size > scriptBytesMax) return false;
    return /\byield\b|stream/i.test(await readFile(path, "utf8"));
  }
  return false;
}
