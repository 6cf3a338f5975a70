/**
 * Amazon's protocols, driven by the rows of the services and their published models. `createGateway` serves every API
 * on one port. It finds the service, verifies the signature if credentials are configured, and reads the body up to a
 * limit. Then it parses and checks the input, checks the permission, calls the handler and sends the output or error.
 * Handlers throw AwsError; any other error is a bug and becomes InternalFailure.
 *
 * `service-row.ts` defines the rows: `ModelledService` for services with a published model, `RawService` for services
 * that read bodies themselves (S3, sagemaker-runtime).
 */
export { createGateway, type Gateway } from "./gateway.ts";
export { createStandbyGateway } from "./standby-gateway.ts";
export type { GatewayOptions, PermissionCheck } from "./gateway-options.ts";
export {
  anyResource,
  lazyRows,
  openedCall,
  type CallContext,
  type LazyOperationRows,
  type ModelledService,
  type OperationRows,
  type RawExchange,
  type RawOperationRow,
  type RawService,
  type ServiceRow,
} from "./service-row.ts";
export { encodeEvent, encodeEventHeaders, eventStreamType } from "./event-stream.ts";
export { readEvents, type ReadEvent } from "./event-stream-reading.ts";
export { StreamWriter } from "./stream-writer.ts";
export { checkInput } from "./check-input.ts";
export { sendAwsError, sendResponse } from "./send-response.ts";
export { toAwsError } from "./errors.ts";
export { rejectUnsupportedMembers, type UnsupportedMember } from "./unsupported-members.ts";
export { adviceFor, type UnsupportedOperations } from "./unsupported-operations.ts";
export { pageAfter, type PageQuery } from "./page-after.ts";
export { pageToken, positionOfToken, type Listing } from "./page-token.ts";
export { firstInOrder } from "./first-in-order.ts";
export { isLoopbackName, rejectionOf, type HostAndOriginRules } from "./web-pages.ts";
export { verifiedRequest } from "./body.ts";
export { probeOf } from "./probes.ts";
export { sendUnavailable } from "./send-unavailable.ts";
export { closeIfUnread } from "./close-if-unread.ts";
export { malformedXml, readXml, writeXml, xmlDeclaration, type XmlElements } from "./xml.ts";
