import type { IncomingMessage } from "node:http";
import type { ByteBudget, Clock, Logger, EventLoopQueue } from "@galatea/base";
import type { Authenticator, CredentialLookup } from "../signing/index.ts";
import type { ServiceRow } from "./service-row.ts";
import type { ServiceTable } from "./service-table.ts";

/** True if the owner of a proven key may do that to the resource with that ARN. */
export type Permits = (accessKeyId: string, action: string, resource: string) => boolean;

export interface GatewayOptions {
  readonly services: readonly ServiceRow[];
  /** Null: open, nothing is verified. */
  readonly credentials: CredentialLookup | null;
  /** Without it everybody may do everything. */
  readonly permits?: Permits;
  readonly regionDefault: string;
  readonly accountIdDefault: string;
  /** Of a modelled operation's request, before and after decompression. */
  readonly operationBodyBytesMax?: number;
  /** The sentence with which a request is refused before anything else of it is looked at, or null. */
  readonly refuses?: (request: IncomingMessage) => string | null;
  /** For the bodies and answers that are held; without it they are bounded one by one. */
  readonly requestMemory?: ByteBudget;
  readonly logger: Logger;
  readonly clock?: Clock;
}

export interface GatewayState extends GatewayOptions {
  readonly table: ServiceTable;
  readonly clock: Clock;
  readonly operationBodyBytesMax: number;
  readonly requestMemory: ByteBudget;
  readonly loopQueue: EventLoopQueue;
  readonly authenticator: Authenticator | null;
}
