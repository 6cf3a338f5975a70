import { openHttpListener, type HttpListenerOptions } from "../http-listener/index.ts";
import { containerHandler, type ContainerRoutesOptions } from "./container-routes.ts";
import type { Listener } from "../listener.ts";

export type ContainerOptions = Omit<ContainerRoutesOptions, "isPrivate"> & Omit<HttpListenerOptions, "handle">;

/** Binds the container API to a port (Triton's 8080) or a Unix socket and starts to serve. */
export function openContainer(options: ContainerOptions): Promise<Listener> {
  const handle = containerHandler({ ...options, isPrivate: "socketPath" in options.address });
  return openHttpListener({ ...options, handle });
}
