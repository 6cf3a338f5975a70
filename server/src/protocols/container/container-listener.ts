import type { Logger } from "../../base/index.ts";
import { openHttpListener, type HttpListener, type ListenAddress } from "../http-listener/index.ts";
import { containerHandler, type ContainerRoutesOptions } from "./container-routes.ts";

export interface ContainerOptions extends ContainerRoutesOptions {
  readonly address: ListenAddress;
  readonly logger: Logger;
}

/** Binds the container contract to a port (8080 of the original) or a Unix socket and starts to answer. */
export function openContainer(options: ContainerOptions): Promise<HttpListener> {
  const { address, limits, logger } = options;
  return openHttpListener({ address, limits, logger, handle: containerHandler(options) });
}
