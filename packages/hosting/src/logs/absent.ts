/** For a file that another may have removed meanwhile. */
export function noneWhenAbsent(error: unknown): [] {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ENOTDIR") return [];
  throw error;
}
