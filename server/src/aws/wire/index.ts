/**
 * Amazon's protocols, driven by the published models. `createGateway` serves every API on one port: it tells services apart,
 * verifies signatures where credentials are configured, reads bodies up to a bound, parses and checks inputs, calls the handlers
 * and writes outputs and errors. Handlers throw AwsError; anything else is a bug and becomes InternalFailure.
 * The operations of a service are `OperationHandlers`; sagemaker-runtime is a `RawService` that reads its line and headers with
 * `parseRuntimeCall`; S3 is an `ObjectService`.
 */
export {
  createGateway,
  type Gateway,
  type GatewayLimits,
  type GatewayOptions,
  type GatewayServices,
} from "./gateway.ts";
export type { CallContext, ObjectName, ObjectService, OperationHandlers, RawService } from "./handlers.ts";
export { parseRuntimeCall, type RuntimeCall } from "./rest-routes.ts";
export { isLoopbackName, refusedRequest, type DoorRules } from "./web-pages.ts";
export { readBody } from "./body.ts";
export { closeIfUnread } from "./last-answer.ts";
export { malformed, readXml, writeXml, xmlDeclaration, type XmlContent, type XmlElements } from "./xml.ts";
