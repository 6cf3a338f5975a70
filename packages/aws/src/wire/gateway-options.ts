import type { IncomingMessage } from "node:http";
import type { ByteBudget, Clock, Logger, EventLoopQueue } from "@galatea/base";
import type { Authenticator, CredentialLookup } from "../signing/index.ts";
import type { ServiceRow } from "./service-row.ts";
import type { ServiceTable } from "./service-table.ts";

/** Returns whether the owner of a verified key may perform an action on the resource with an ARN. */
export type PermissionCheck = (accessKeyId: string, action: string, resource: string) => boolean;

export interface GatewayOptions {
  readonly services: readonly ServiceRow[];
  /** Null: requests are not authenticated. */
  readonly credentials: CredentialLookup | null;
  /** Default: every caller may perform every action. */
  readonly isAllowed?: PermissionCheck;
  readonly regionDefault: string;
  readonly accountIdDefault: string;
  /** Maximum size of a modelled operation's request, before and after decompression. */
  readonly operationBodyBytesMax?: number;
  /** Returns the error text if a request is rejected because of its host or origin, else null. Called before all other checks. */
  readonly rejectionText?: (request: IncomingMessage) => string | null;
  /** Memory of buffered bodies and responses; without it each is limited on its own. */
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
