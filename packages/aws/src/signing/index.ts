/**
 * Signs and verifies requests with Amazon's signatures, and decodes the chunked bodies that use them. This module knows
 * no protocol's error codes: an invalid signature is a SignatureFailure with a reason. The caller must verify bodies
 * against the returned payload.
 */
export { Authenticator, type CredentialLookup, type SignedPayload } from "./authenticator.ts";
export { bearerScope } from "./bearer-token.ts";
export { ChunkFramingError, ChunkSizeError, decodeAwsChunked } from "./aws-chunked.ts";
export { signRequestHeaders } from "./sign-request.ts";
export { uriEncode } from "./signature.ts";
export {
  SignatureFailure,
  credentialScope,
  decodeComponent,
  pathOf,
  queryValue,
  rawQueryOf,
  type CredentialScope,
  type SignatureFailureReason,
} from "./signed-request.ts";
export type { Credential } from "./credential.ts";
