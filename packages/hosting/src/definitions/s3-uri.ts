/**
 * Parses `s3://bucket/key` or the `https://` forms; null for any other text and for a wrong encoding. The key may be
 * empty.
 */
export function parseS3Uri(uri: string): { readonly bucket: string; readonly key: string } | null {
  const match = /^(?:s3|https):\/\/([^/]+)\/?(.*)$/s.exec(uri);
  const host = match?.[1];
  if (match === null || host === undefined) return null;
  const path = match[2] ?? "";
  if (uri.startsWith("s3:")) return { bucket: host, key: path };
  const virtualHost = /^(.+)\.s3[.-][a-z0-9.-]*amazonaws\.com$/.exec(host)?.[1];
  const slash = path.indexOf("/");
  const bucket = virtualHost ?? (slash < 0 ? path : path.slice(0, slash));
  const encoded = virtualHost !== undefined ? path : slash < 0 ? "" : path.slice(slash + 1);
  try {
    return { bucket, key: decodeURIComponent(encoded) };
  } catch {
    return null;
  }
}

/** Returns a key as a prefix: with one slash at its end, or empty for the whole bucket. */
export function folderOf(key: string): string {
  const inner = key.replace(/\/+$/, "");
  return inner === "" ? "" : `${inner}/`;
}

/**
 * Returns whether an object marks a folder in consoles: an empty object whose key ends with a slash. It is no file and
 * no input.
 */
export function isFolderMark({ key, byteLength }: { readonly key: string; readonly byteLength: number }): boolean {
  return byteLength === 0 && key.endsWith("/");
}
