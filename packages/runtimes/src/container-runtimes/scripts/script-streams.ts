import { readFile, stat } from "node:fs/promises";
import { join, normalize } from "node:path";

const scriptBytesMax = 4 * 1024 * 1024;
const programDefault = "inference.py";

/**
 * Whether a script may give answers part by part: its text has the word `yield`, or one with `stream` in it. A model that may is a decoupled
 * one, which costs small answers a message more; a script that has neither word and gives an iterator is answered whole, with a line
 * in its log. `program`: as SAGEMAKER_PROGRAM names it; null for the toolkit's own name.
 */
export async function mayStream(directories: readonly string[], program: string | null): Promise<boolean> {
  const name = program === null || program === "" ? programDefault : program;
  const file = normalize(name.endsWith(".py") ? name : `${name.replaceAll(".", "/")}.py`);
  // No script lies elsewhere, and no other file is looked at.
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
