import type { IncomingMessage, ServerResponse } from "node:http";

/** Who asked, as far as the wire tells: account and region come from the credential scope, never from the URL. */
export interface CallContext {
  readonly requestId: string;
  readonly region: string;
  readonly accountId: string;
  readonly signal: AbortSignal;
}

/**
 * One service's operations. Inputs were parsed and checked against the service's published model (required, types, patterns,
 * lengths, enums) with the service's own error texts; outputs are serialised by it. Handlers throw AwsError.
 * Timestamps are Date, blobs Uint8Array, integers number.
 */
export type OperationHandlers = Readonly<
  Record<string, (input: never, context: CallContext) => Promise<Record<string, unknown>>>
>;

/** A service whose traffic is bodies rather than members (S3, sagemaker-runtime) takes the request as it is. */
export type RawService = (request: IncomingMessage, response: ServerResponse, context: CallContext) => Promise<void>;
