import type { IncomingMessage } from "node:http";
import type { ByteBudget, Clock, Logger, EventLoopQueue } from "@galatea/base";
import type { Authenticator, CredentialLookup } from "../signing/index.ts";
import type { ServiceRow } from "./service-row.ts";
import type { ServiceTable } from "./service-table.ts";

/** Returns whether the owner of a verified key may perform an action on the resource with this ARN. */
export type PermissionCheck = (accessKeyId: string, action: string, resource: string) => boolean;

export interface GatewayOptions {
  readonly services: readonly ServiceRow[];
  /** Null: requests are not authenticated. */
  readonly credentials: CredentialLookup | null;
  /** Default: every caller may perform every action. */
  readonly isAllowed?: PermissionCheck;
  readonly regionDefault: string;
  readonly accountIdDefault: string;
  /** Maximum size of the body of a modelled operation, before and after decompression, in bytes. */
  readonly operationBodyBytesMax?: number;
  /**
   * Returns the error text if a request must be rejected because of its host or origin, else null. Called before all
   * other checks.
   */
  readonly rejectionText?: (request: IncomingMessage) => string | null;
  /** Memory for buffered bodies and responses; absent: each is only limited individually. */
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
