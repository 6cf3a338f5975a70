import { statfs } from "node:fs/promises";

/**
 * Returns the used fraction of a directory's file system, in [0, 1]. Blocks that are reserved for root count as used.
 */
export async function readDiskUsage(directory: string): Promise<number> {
  const { bavail, blocks } = await statfs(directory);
  return 1 - bavail / Math.max(1, blocks);
}
