/**
 * Returns an empty list for the error of a missing file, which a concurrent call may have removed; throws all others.
 */
export function emptyIfMissing(error: unknown): [] {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ENOTDIR") return [];
  throw error;
}
