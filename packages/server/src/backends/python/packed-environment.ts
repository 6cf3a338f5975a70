import { once } from "node:events";
import { createReadStream } from "node:fs";
import { lstat, mkdir, symlink } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { Unpack, type ReadEntry } from "tar";
import { asDiskError, InferenceError } from "@galatea/base";

export interface UnpackLimits {
  readonly bytesMax: number;
  readonly entriesMax: number;
}

/**
 * Unpacks an archive of conda-pack or venv-pack to the empty directory `directory`. Writes nothing outside of that directory, whatever the
 * archive contains. Returns the number of bytes. Throws INVALID_ARG for an invalid archive, and UNAVAILABLE for a full disk; the caller
 * must then remove the files unpacked so far.
 */
export async function unpackEnvironment(
  archive: string,
  directory: string,
  limits: UnpackLimits,
  signal: AbortSignal,
): Promise<number> {
  // Links to targets outside of the archive are created after all files, so that no file is written through them.
  const leadingOut = new Map<string, string>();
  let byteCount = 0;
  let entryCount = 0;
  const check = (entry: ReadEntry): boolean => {
    byteCount += headerBytes + entry.size;
    if (++entryCount > limits.entriesMax || byteCount > limits.bytesMax)
      throw new InferenceError(
        "INVALID_ARG",
        `the packed environment ${archive} is larger than allowed (--python-environments-bytes)`,
      );
    if (!kinds.has(entry.type)) throw refused(archive, `'${entry.path}' is a ${entry.type}`);
    // Unpacked files are readable by all users, because models run as various users. Set-user-id bits are removed.
    if (entry.mode !== undefined)
      entry.mode = (entry.mode & 0o755) | (entry.type === "Directory" || entry.mode & 0o100 ? 0o755 : 0o644);
    if (entry.type !== "SymbolicLink" || entry.linkpath === undefined) return true;
    const target = entry.linkpath;
    if (!leadsOut(entry.path, target)) return true;
    if (leadingOut.size >= linksOutMax) throw refused(archive, "too many links point outside of it");
    leadingOut.set(entry.path, target);
    return false;
  };
  try {
    await extractAll(archive, directory, check, signal);
    for (const [path, target] of leadingOut) await makeLink(directory, path, target);
    return byteCount;
  } catch (error) {
    signal.throwIfAborted();
    const found = asDiskError(error, `'${directory}'`) as Error;
    if (found instanceof InferenceError) throw found;
    throw refused(archive, found.message, error);
  }
}

/** Extracts the entries that `check` accepts. An error of `check` stops the extraction. */
async function extractAll(
  archive: string,
  directory: string,
  check: (entry: ReadEntry) => boolean,
  signal: AbortSignal,
): Promise<void> {
  const ended = Promise.withResolvers<void>();
  // Prevents an unhandled rejection: the promise may reject before it is awaited.
  ended.promise.catch(() => {});
  let isRefused = false;
  const unpack = new Unpack({
    cwd: directory,
    strict: true,
    // Owners in the archive are ignored, and other users get no write permission.
    preserveOwner: false,
    umask: 0o022,
    filter: (_path, entry) => {
      if (isRefused) return false;
      try {
        return check(entry as ReadEntry);
      } catch (error) {
        // An exception thrown in this callback would not be caught by the caller.
        isRefused = true;
        ended.reject(error);
        return false;
      }
    },
  });
  unpack.on("error", (error) => {
    isRefused = true;
    ended.reject(error);
  });
  unpack.on("close", () => ended.resolve());
  for await (const chunk of createReadStream(archive, { signal, highWaterMark: 2 ** 18 })) {
    if (isRefused) break;
    if (!unpack.write(chunk as Buffer)) await Promise.race([ended.promise, once(unpack, "drain", { signal })]);
  }
  if (!isRefused) unpack.end();
  await ended.promise;
}

const kinds: ReadonlySet<string> = new Set(["File", "OldFile", "ContiguousFile", "Directory", "SymbolicLink", "Link"]);

const linksOutMax = 1000;
/** Bytes for the header of an entry, which count towards the size of the archive. */
const headerBytes = 512;

/**
 * Returns whether a link leads outside of the archive. Such links are valid: like virtual environments, venv-pack creates links to the
 * machine's interpreter.
 */
function leadsOut(path: string, target: string): boolean {
  return target.startsWith("/") || /^\.\.(\/|$)/.test(normalize(join(dirname(normalize(path)), target)));
}

/** Creates a link without following other links on its path, because an earlier link of the archive may lead anywhere. */
async function makeLink(root: string, path: string, target: string): Promise<void> {
  const segments = path.split("/").filter((segment) => segment !== "" && segment !== ".");
  if (path.startsWith("/") || segments.includes("..")) throw new Error(`the link '${path}' points outside the archive`);
  for (let count = 1; count < segments.length; count++) {
    const parent = join(root, ...segments.slice(0, count));
    const found = await lstat(parent).catch(() => null);
    if (found === null) await mkdir(parent);
    else if (!found.isDirectory())
      throw new Error(`the link '${path}' is below '${segments.slice(0, count).join("/")}'`);
  }
  await symlink(target, join(root, ...segments));
}

function refused(archive: string, why: string, cause?: unknown): InferenceError {
  return new InferenceError("INVALID_ARG", `cannot unpack the Python environment ${archive}: ${why}`, { cause });
}
