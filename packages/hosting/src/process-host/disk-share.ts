import { statfs } from "node:fs/promises";

/** How full the disk of a directory is for who is not root, from 0 to 1. */
export async function diskShareOf(directory: string): Promise<number> {
  const { bavail, blocks } = await statfs(directory);
  return 1 - bavail / Math.max(1, blocks);
}
