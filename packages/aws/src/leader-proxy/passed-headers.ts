import type { IncomingHttpHeaders } from "node:http";

/** Headers that concern only one connection and are not passed on (RFC 9110, section 7.6.1). */
const hopHeaders: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "upgrade",
]);

/** The value that a gateway adds to the header Via. */
const gatewayName = "1.1 galatea-gateway";

/** Returns whether a request has already passed a gateway, so that passing it on would be a loop. */
export const hasPassedGateway = (via: string | undefined): boolean => via?.includes(gatewayName) === true;

/**
 * Returns the headers to pass on, in the format of `IncomingMessage.rawHeaders`: unchanged, because a signature may
 * cover them, except for those of the connection.
 */
export function passedHeaders(rawHeaders: readonly string[]): string[] {
  const passed: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name = "", value = ""] = rawHeaders.slice(index, index + 2);
    if (!hopHeaders.has(name.toLowerCase())) passed.push(name, value);
  }
  return passed;
}

/** Returns the headers of a request to the leader. By `Via` the leader knows that the caller may be on another machine. */
export function requestHeaders(
  rawHeaders: readonly string[],
  { method, headers }: { readonly method: string | undefined; readonly headers: IncomingHttpHeaders },
): string[] {
  const passed = [...passedHeaders(rawHeaders), "Via", gatewayName];
  const mayLackBody = method === "GET" || method === "HEAD";
  const saysLength = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
  // Without a length, Node would send an empty body in chunks, which some operations reject.
  return mayLackBody || saysLength ? passed : [...passed, "Content-Length", "0"];
}
