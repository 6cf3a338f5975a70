import type { Logger } from "../../base/index.ts";
import { openHttpListener, type HttpListener, type ListenAddress } from "../http-listener/index.ts";
import { kserveHandler, type KserveRoutesOptions } from "./routes.ts";

export interface KserveHttpOptions extends KserveRoutesOptions {
  readonly address: ListenAddress;
  readonly logger: Logger;
}

/** Binds the KServe v2 HTTP front end (port 8000 of the original) and starts to answer. */
export function openKserveHttp(options: KserveHttpOptions): Promise<HttpListener> {
  const { address, limits, logger } = options;
  return openHttpListener({ address, limits, logger, handle: kserveHandler(options) });
}
