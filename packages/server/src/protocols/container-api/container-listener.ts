import type { ByteBudget, Logger } from "@galatea/base";
import { openHttpListener, type ListenAddress } from "../http-listener/index.ts";
import { containerHandler, type ContainerRoutesOptions } from "./container-routes.ts";
import type { Listener } from "../listener.ts";

export interface ContainerOptions extends Omit<ContainerRoutesOptions, "isPrivate"> {
  readonly address: ListenAddress;
  readonly logger: Logger;
  readonly budget: ByteBudget;
}

/** Binds the container contract to a port (8080 of Triton) or a Unix socket and starts to answer. */
export function openContainer(options: ContainerOptions): Promise<Listener> {
  const { address, limits, logger, budget, clock } = options;
  const handle = containerHandler({ ...options, isPrivate: "socketPath" in address });
  return openHttpListener({ address, limits, logger, budget, clock, handle });
}
