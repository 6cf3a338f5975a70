import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { UnpackedArchive } from "./archive.ts";

const readBytes = 2 ** 20;
/** Cost units (about one per byte) between two checks of the abort signal. */
const turnBytes = 8 * 2 ** 20;
const entryCost = 2 ** 16;

/**
 * Resolves with true if `destination` has exactly the content of an archive: the same directories, the same links, and
 * files with the same SHA-256. Links are not followed. Runs in an unpacking thread.
 */
export async function isTreeUnchanged(
  destination: string,
  tree: UnpackedArchive,
  signal: AbortSignal,
): Promise<boolean> {
  const files = new Map(tree.files.map((file) => [file.path, file]));
  const locations = new Map(tree.places.map(({ path, linkTarget }) => [path, linkTarget]));
  const folders = [""];
  let sinceTurn = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of readdirSync(join(destination, folder), { withFileTypes: true })) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      const file = files.get(path);
      if (entry.isFile() && file !== undefined) {
        const isSame = await isSameFile(join(destination, path), file, async (bytes) => {
          sinceTurn += bytes;
          if (sinceTurn < turnBytes) return;
          sinceTurn = 0;
          await setImmediate();
          signal.throwIfAborted();
        });
        if (!isSame) return false;
        files.delete(path);
      } else if (entry.isDirectory() && locations.get(path) === null) folders.push(path);
      else if (!entry.isSymbolicLink() || readlinkSync(join(destination, path)) !== locations.get(path)) return false;
      locations.delete(path);
    }
  }
  return files.size === 0 && locations.size === 0;
}

/**
 * Resolves with true if a file has the recorded length and SHA-256. `spent` is called with the cost of each step, and
 * rejects to abort the check.
 */
async function isSameFile(
  path: string,
  file: UnpackedArchive["files"][number],
  spent: (bytes: number) => Promise<void>,
): Promise<boolean> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    await spent(entryCost);
    if (fstatSync(fd).size !== file.byteLength) return false;
    const hash = createHash("sha256");
    const buffer = Buffer.allocUnsafe(Math.min(readBytes, file.byteLength));
    for (let left = file.byteLength; left > 0;) {
      const count = readSync(fd, buffer, 0, Math.min(buffer.length, left), null);
      if (count === 0) return false;
      hash.update(buffer.subarray(0, count));
      left -= count;
      await spent(count);
    }
    return hash.digest("hex") === file.sha256;
  } finally {
    closeSync(fd);
  }
}
