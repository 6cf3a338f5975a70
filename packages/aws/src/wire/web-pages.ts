import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { queryValue } from "../signing/index.ts";

/** The hosts and origins from which requests are accepted, whether they are signed or not. */
export interface HostAndOriginRules {
  /**
   * Lower-case names and addresses that the platform accepts in addition to names and addresses of the loopback
   * interface.
   */
  readonly hosts: ReadonlySet<string>;
  /** True if a Host header with any IP address is accepted. This is safe because DNS rebinding requires a host name. */
  readonly anyAddress: boolean;
  /** Returns whether the operator allows pages of an origin to request a URL. */
  readonly allowsPage: (origin: string, url: string) => boolean;
  /** True if signatures are verified, so that a presigned URL proves that it was issued. */
  readonly verified: boolean;
}

export interface RequestTarget {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

/**
 * Returns the error text for a cross-site request of a browser, and null for a request to accept. A browser sends the
 * page's origin in `Sec-Fetch-Site` and `Origin`. After DNS rebinding, `Host` contains the attacker's name.
 */
export function rejectionOf({ url, headers }: RequestTarget, rules: HostAndOriginRules): string | null {
  for (const host of [headers.host, /^[a-z]+:\/\/([^/?#]*)/i.exec(url)?.[1]]) {
    if (host === undefined || isKnownHost(hostName(host), rules)) continue;
    return `The host '${host.slice(0, 255)}' is not known to this platform. If it is yours: galatea up --allowed-host ${hostName(host).slice(0, 255)}`;
  }
  if (!isCrossSite(headers)) return null;
  if (headers.origin !== undefined && rules.allowsPage(headers.origin, url)) return null;
  if (rules.verified && queryValue(url, "X-Amz-Signature") !== undefined) return null;
  return "Requests from web pages of other origins are rejected.";
}

function isCrossSite(headers: IncomingHttpHeaders): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") return true;
  const { origin, host } = headers;
  if (origin === undefined) return false;
  const [, scheme, location] = /^(https?):\/\/(.+)$/.exec(origin) ?? [];
  return scheme === undefined || host === undefined || location?.toLowerCase() !== host.toLowerCase();
}

function isKnownHost(name: string, { hosts, anyAddress }: HostAndOriginRules): boolean {
  return isLoopbackName(name) || hosts.has(name) || (anyAddress && isIP(name) !== 0);
}

/**
 * Returns whether a name is that of the loopback interface. Browsers resolve localhost and its subdomains without DNS
 * (RFC 6761).
 */
export function isLoopbackName(name: string): boolean {
  if (name === "localhost" || name.endsWith(".localhost") || name === "::1") return true;
  return isIP(name) === 4 && name.startsWith("127.");
}

/** Returns the host name without port and brackets: `Name.:8770` becomes `name`, and `[::1]:8770` becomes `::1`. */
function hostName(host: string): string {
  const name = /^\[(.*)\](?::\d*)?$/.exec(host)?.[1] ?? host.replace(/:\d*$/, "");
  return name.toLowerCase().replace(/\.$/, "");
}
