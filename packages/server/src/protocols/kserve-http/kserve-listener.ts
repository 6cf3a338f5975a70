import type { ByteBudget, Clock, Logger } from "@galatea/base";
import { openHttpListener, type ListenAddress } from "../http-listener/index.ts";
import { kserveHandler, type KserveRoutesOptions } from "./routes.ts";
import type { Listener } from "../listener.ts";

export interface KserveHttpOptions extends KserveRoutesOptions {
  readonly address: ListenAddress;
  readonly logger: Logger;
  readonly budget: ByteBudget;
  readonly clock: Clock;
}

/** Binds the KServe v2 HTTP front end (port 8000 of Triton) and starts to answer. */
export function openKserveHttp(options: KserveHttpOptions): Promise<Listener> {
  const { address, limits, logger, budget, clock } = options;
  return openHttpListener({ address, limits, logger, budget, clock, handle: kserveHandler(options) });
}
