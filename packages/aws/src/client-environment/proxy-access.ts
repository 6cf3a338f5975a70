import { createHmac, timingSafeEqual } from "node:crypto";

/** The proxy through which the platform's CONNECT proxy opens a client's tunnels. */
export interface ProxyAccess {
  /** The shell's previous proxy; null: the platform connects directly. */
  readonly upstream: URL | null;
}

const direct = "direct";

/**
 * Returns the proxy's URL for one shell: a client with it can open tunnels to any host, through the shell's previous
 * proxy.
 */
export function proxyUrl(platformUrl: string, secret: string, upstream: string | null): string {
  const user = upstream === null ? direct : Buffer.from(upstream).toString("base64url");
  const url = new URL(platformUrl);
  url.username = user;
  url.password = passwordOf(user, secret);
  return url.href.replace(/\/$/, "");
}

/** Parses a `Proxy-Authorization` header; returns null for credentials that `proxyUrl` did not issue with this secret. */
export function parseProxyAuthorization(header: string | undefined, secret: string): ProxyAccess | null {
  const encoded = /^basic +(\S+)$/i.exec(header ?? "")?.[1];
  if (encoded === undefined) return null;
  const [user = "", password = ""] = Buffer.from(encoded, "base64").toString("utf8").split(":");
  const expected = Buffer.from(passwordOf(user, secret));
  const input = Buffer.from(password);
  if (input.byteLength !== expected.byteLength || !timingSafeEqual(input, expected)) return null;
  return { upstream: upstreamOf(user) };
}

/**
 * Returns the proxy that the shell used before `galatea env --proxy`; null for none. If the variable already names this
 * platform, returns the previous proxy that the platform's URL contains.
 */
export function previousProxy(variable: string | undefined, platformUrl: string): string | null {
  if (variable === undefined || variable === "") return null;
  const text = variable.includes("://") ? variable : `http://${variable}`;
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  if (url.host !== new URL(platformUrl).host) return url.href;
  return url.username === "" ? null : (upstreamOf(url.username)?.href ?? null);
}

function upstreamOf(user: string): URL | null {
  const text = user === direct ? "" : Buffer.from(user, "base64url").toString("utf8");
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  return url.protocol === "http:" || url.protocol === "https:" ? url : null;
}

function passwordOf(user: string, secret: string): string {
  return createHmac("sha256", secret).update(`proxy ${user}`).digest("hex").slice(0, 32);
}
