import type { IncomingMessage, ServerResponse } from "node:http";
import type { ByteLease } from "../../base/index.ts";
import type { Authenticator } from "../../signing/index.ts";

/** Who asked, as far as the wire tells: account and region come from the credential scope, never from the URL. */
export interface CallContext {
  readonly requestId: string;
  readonly region: string;
  readonly accountId: string;
  /** The key that signed, null for an unsigned request. Proven only where credentials are configured. */
  readonly accessKeyId: string | null;
  readonly signal: AbortSignal;
  /** What the call holds of the memory for calls in flight: its body, its answer. All of it goes back when the connection is done with it. */
  readonly memory: ByteLease;
  /** Throws AccessDenied where the caller may not do that: `s3:GetObject`, and the object that it is about. */
  readonly permit: (action: string, object?: ObjectName) => void;
}

export interface ObjectName {
  readonly bucket: string;
  readonly key: string;
}

/**
 * One service's operations. Inputs were parsed and checked against the service's published model (required, types, patterns,
 * lengths, enums) with the service's own error texts; outputs are serialised by it. Handlers throw AwsError.
 * Timestamps are Date, blobs Uint8Array, integers number. Output members the model does not know are left out.
 */
export type OperationHandlers = Readonly<
  Record<string, (input: never, context: CallContext) => Promise<Record<string, unknown>>>
>;

/**
 * A service whose traffic is bodies rather than members (sagemaker-runtime) takes the request as it is; the gateway has verified
 * the signature where credentials are configured, and writes an AwsError that is thrown before the response began in the
 * service's protocol.
 */
export type RawService = (request: IncomingMessage, response: ServerResponse, context: CallContext) => Promise<void>;

/**
 * S3 authenticates by itself, because it also knows presigned URLs, form policies and signed chunks, and its bodies must not be
 * buffered to be verified. It answers `Expect: 100-continue` itself and writes its own errors.
 */
export type ObjectService = (
  request: IncomingMessage,
  response: ServerResponse,
  context: CallContext & { readonly authenticator: Authenticator | null },
) => Promise<void>;
