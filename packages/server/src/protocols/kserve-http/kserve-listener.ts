import { openHttpListener, type HttpListenerOptions } from "../http-listener/index.ts";
import { kserveHandler, type KserveRoutesOptions } from "./routes.ts";
import type { Listener } from "../listener.ts";

export type KserveHttpOptions = KserveRoutesOptions & Omit<HttpListenerOptions, "handle">;

/** Binds the KServe v2 HTTP front end (Triton's port 8000) and starts to serve. */
export function openKserveHttp(options: KserveHttpOptions): Promise<Listener> {
  return openHttpListener({ ...options, handle: kserveHandler(options) });
}
