import { createHmac, timingSafeEqual } from "node:crypto";

/** What a client may have passed on by the platform's CONNECT proxy, and through which proxy. */
export interface ProxyAccess {
  /** The proxy that the client's shell had before, null: none. */
  readonly upstream: URL | null;
}

const direct = "direct";

/** The proxy's address for one shell: who knows it is passed on to hosts that are not the platform's, over the shell's own proxy. */
export function proxyUrl(platformUrl: string, secret: string, upstream: string | null): string {
  const user = upstream === null ? direct : Buffer.from(upstream).toString("base64url");
  const url = new URL(platformUrl);
  url.username = user;
  url.password = passwordOf(user, secret);
  return url.href.replace(/\/$/, "");
}

/** Reads `Proxy-Authorization`; null where it is not one that `proxyUrl` made with this secret. */
export function proxyAccess(header: string | undefined, secret: string): ProxyAccess | null {
  const encoded = /^basic +(\S+)$/i.exec(header ?? "")?.[1];
  if (encoded === undefined) return null;
  const [user = "", password = ""] = Buffer.from(encoded, "base64").toString("utf8").split(":");
  const expected = Buffer.from(passwordOf(user, secret));
  const given = Buffer.from(password);
  if (given.byteLength !== expected.byteLength || !timingSafeEqual(given, expected)) return null;
  return { upstream: upstreamOf(user) };
}

/**
 * The proxy that a shell had before: what its variable says, or, where that is this platform already, what its address carries.
 * Null for none.
 */
export function earlierProxy(variable: string | undefined, platformUrl: string): string | null {
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
