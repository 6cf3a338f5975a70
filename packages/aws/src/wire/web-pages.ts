import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { queryValue } from "../signing/index.ts";

/** Which requests may come in at all, whoever signed them. */
export interface HostAndOriginRules {
  /** Names and addresses in lower case that the platform answers to beside those of the loopback interface. */
  readonly hosts: ReadonlySet<string>;
  /**
   * True if every address is the platform's: a page that was loaded by an address comes from there, only names can be
   * rebound.
   */
  readonly anyAddress: boolean;
  /** Returns whether pages of an origin may ask for a URL, as the operator has said. */
  readonly allowsPage: (origin: string, url: string) => boolean;
  /** True if signatures are verified, so that a presigned address proves that it was given out. */
  readonly verified: boolean;
}

export interface RequestTarget {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

/**
 * The sentence with which a request is refused that a page in somebody's browser sent, or null. A browser says where a page came
 * from in `Sec-Fetch-Site` and `Origin`; a name of the page's own that was made to mean this machine stands in `Host`.
 */
export function refusedRequest({ url, headers }: RequestTarget, rules: HostAndOriginRules): string | null {
  for (const host of [headers.host, /^[a-z]+:\/\/([^/?#]*)/i.exec(url)?.[1]]) {
    if (host === undefined || isKnownHost(hostName(host), rules)) continue;
    return `The host '${host.slice(0, 255)}' is not known to this platform. If it is yours: galatea up --allowed-host ${hostName(host).slice(0, 255)}`;
  }
  if (!isCrossSite(headers)) return null;
  if (headers.origin !== undefined && rules.allowsPage(headers.origin, url)) return null;
  if (rules.verified && queryValue(url, "X-Amz-Signature") !== undefined) return null;
  return "Requests of web pages from elsewhere are refused.";
}

function isCrossSite(headers: IncomingHttpHeaders): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") return true;
  const { origin, host } = headers;
  if (origin === undefined) return false;
  const [, scheme, place] = /^(https?):\/\/(.+)$/.exec(origin) ?? [];
  return scheme === undefined || host === undefined || place?.toLowerCase() !== host.toLowerCase();
}

function isKnownHost(name: string, { hosts, anyAddress }: HostAndOriginRules): boolean {
  return isLoopbackName(name) || hosts.has(name) || (anyAddress && isIP(name) !== 0);
}

/** Browsers resolve localhost and what ends in it themselves, without asking anybody (RFC 6761). */
export function isLoopbackName(name: string): boolean {
  if (name === "localhost" || name.endsWith(".localhost") || name === "::1") return true;
  return isIP(name) === 4 && name.startsWith("127.");
}

/** `Name.:8770` is name, `[::1]:8770` is ::1. */
function hostName(host: string): string {
  const name = /^\[(.*)\](?::\d*)?$/.exec(host)?.[1] ?? host.replace(/:\d*$/, "");
  return name.toLowerCase().replace(/\.$/, "");
}
