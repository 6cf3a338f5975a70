import type { IncomingMessage } from "node:http";
import { credentialScope, pathOf } from "../signing/index.ts";

/** Returns which probe an unsigned request is. A signed request with such a path is for a bucket with that name. */
export function probeOf({ method = "GET", url = "/", headers }: IncomingMessage): "ping" | "health" | null {
  if (method !== "GET" && method !== "HEAD") return null;
  const name = /^\/(ping|health)$/.exec(pathOf(url))?.[1];
  if (name === undefined || credentialScope({ method, url, headers }) !== null) return null;
  return name === "ping" ? "ping" : "health";
}
