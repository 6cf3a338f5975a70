import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

export function megabytes(byteLength: number): string {
  return `${(byteLength / 1e6).toFixed(0)} MB`;
}

/**
 * Calls `detail` once a second with the bytes of the files below `directory`, until `work` has settled, and returns its result. For installers,
 * which do not report progress.
 */
export async function withBytesBelow<T>(
  directory: string,
  detail: (text: string) => void,
  work: Promise<T>,
): Promise<T> {
  const timer = setInterval(() => void bytesBelow(directory).then((count) => detail(megabytes(count))), 1000);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}

/** Files that are removed meanwhile count nothing. */
async function bytesBelow(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  const sizes = entries
    .filter((each) => each.isFile())
    .map(async (each) => (await stat(join(each.parentPath, each.name)).catch(() => null))?.size ?? 0);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
