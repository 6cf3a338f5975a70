import { readFile, stat } from "node:fs/promises";
import { join, normalize } from "node:path";

const scriptBytesMax = 4 * 1024 * 1024;
const programDefault = "inference.py";

/**
 * Returns whether a script may stream its responses: its source contains `yield` or `stream`. Its model is then decoupled, which adds one
 * message to each response. If another script returns an iterator, its chunks are sent as one response, and the script's log says so.
 * `program` is the value of SAGEMAKER_PROGRAM; null for the toolkit's default.
 */
export async function mayStream(directories: readonly string[], program: string | null): Promise<boolean> {
  const name = program === null || program === "" ? programDefault : program;
  const file = normalize(name.endsWith(".py") ? name : `${name.replaceAll(".", "/")}.py`);
  // A path out of the code directory must not read other files of the machine.
  if (file.startsWith("..") || file.startsWith("/")) return false;
  for (const directory of directories) {
    const path = join(directory, file);
    const found = await stat(path).catch(() => null);
    if (found === null) continue;
    // Reading a symbolic link to a device such as /dev/zero would never end.
    if (!found.isFile() || found.size > scriptBytesMax) return false;
    return /\byield\b|stream/i.test(await readFile(path, "utf8"));
  }
  return false;
}
