/**
 * Parses `s3://bucket/key` or the `https://` form of an S3 URL. Returns null for any other text and for invalid percent
 * encoding. The key may be empty.
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

/** Returns a key as a folder prefix: with exactly one slash at its end. An empty key stays empty and means the whole bucket. */
export function folderPrefix(key: string): string {
  const inner = key.replace(/\/+$/, "");
  return inner === "" ? "" : `${inner}/`;
}

/**
 * Returns whether an object is only a placeholder for a folder, as S3 consoles create them: an empty object whose key
 * ends with a slash. Such objects are neither model files nor inputs of transform jobs.
 */
export function isFolderPlaceholder({
  key,
  byteLength,
}: {
  readonly key: string;
  readonly byteLength: number;
}): boolean {
  return byteLength === 0 && key.endsWith("/");
}
