/**
 * Returns an empty list if a file is missing, because a concurrent call may have removed it. Throws all other errors.
 */
export function emptyIfMissing(error: unknown): [] {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ENOTDIR") return [];
  throw error;
}
