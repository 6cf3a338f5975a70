/** `s3://bucket/key` or the `https://` forms; null when it is neither. The key may be empty. */
export function parseS3Uri(uri: string): { readonly bucket: string; readonly key: string } | null {
  const match = /^(?:s3|https):\/\/([^/]+)\/?(.*)$/s.exec(uri);
  const host = match?.[1];
  if (match === null || host === undefined) return null;
  const path = match[2] ?? "";
  if (uri.startsWith("s3:")) return { bucket: host, key: path };
  const virtualHost = /^(.+)\.s3[.-][a-z0-9.-]*amazonaws\.com$/.exec(host)?.[1];
  if (virtualHost !== undefined) return { bucket: virtualHost, key: decodeURIComponent(path) };
  const slash = path.indexOf("/");
  const bucket = slash < 0 ? path : path.slice(0, slash);
  return { bucket, key: slash < 0 ? "" : decodeURIComponent(path.slice(slash + 1)) };
}
