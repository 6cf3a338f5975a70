import { randomUUID } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { assert, AwsError, ByteBudget, ByteLease, systemClock, EventLoopQueue } from "@galatea/base";
import { Authenticator, pathOf, queryValue, rawQueryOf, type CredentialScope } from "../signing/index.ts";
import type { OperationModel } from "../spec/index.ts";
import { sendAwsError, jsonType, sendResponse, type ErrorTarget } from "./send-response.ts";
import { decodeBody, readHashedBody } from "./body.ts";
import type { GatewayOptions, GatewayState } from "./gateway-options.ts";
import { parseJsonInput, toJson } from "./json-protocol.ts";
import { findEventMember, sendEvents } from "./operation-events.ts";
import { parseForm, parseQueryInput, queryResult, type QueryForm } from "./query-protocol.ts";
import { rejectUnsupportedMembers } from "./unsupported-members.ts";
import { adviceFor } from "./unsupported-operations.ts";
import type { CallContext, ModelledService, OperationRow, RawExchange, RawService } from "./service-row.ts";
import { ServiceTable, type RequestDestination, type OperationProtocol, type WireProtocol } from "./service-table.ts";
import { validateInput } from "./validate.ts";
import { writeXml } from "./xml.ts";

export interface Gateway {
  /** Serves one request and never rejects. For both `server.on("request")` and `server.on("checkContinue")`. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Registers `handle` for both events. */
  attach(server: Server): void;
}

const operationBodyBytesMaxDefault = 4 * 2 ** 20;

/** Creates one handler for every AWS API of the platform. */
export function createGateway(options: GatewayOptions): Gateway {
  const clock = options.clock ?? systemClock;
  const gateway: GatewayState = {
    ...options,
    clock,
    table: new ServiceTable(options.services),
    operationBodyBytesMax: options.operationBodyBytesMax ?? operationBodyBytesMaxDefault,
    requestMemory: options.requestMemory ?? new ByteBudget(Infinity),
    loopQueue: new EventLoopQueue(),
    authenticator: options.credentials === null ? null : new Authenticator(options.credentials, clock),
  };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    serve(gateway, request, response).catch((error: unknown) => {
      options.logger.error("a request ended without a response", { error: String(error) });
      response.destroy();
    });
  };
  return {
    handle,
    attach(server) {
      server.on("request", handle);
      server.on("checkContinue", handle);
    },
  };
}

async function serve(gateway: GatewayState, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { destination, scope } = gateway.table.destinationOf(request);
  const aborter = new AbortController();
  const { signal } = aborter;
  const memory = new ByteLease(gateway.requestMemory);
  response.once("close", () => {
    memory[Symbol.dispose]();
    if (!response.writableFinished) aborter.abort(new AwsError("RequestCanceled", "The client closed the connection"));
  });
  const userAgent = request.headers["user-agent"] ?? "";
  const nextTick = () => gateway.loopQueue.next(signal);
  const context = contextOf(gateway, scope, { signal, memory, nextTick, userAgent });
  // A response is data and not a web page. Without this header, a browser might guess its type and run scripts in it.
  response.setHeader("X-Content-Type-Options", "nosniff");
  const { authenticator, logger, clock } = gateway;
  const exchange = { request, response, context, authenticator, logger, clock };
  if (destination.at === "raw") return serveRaw(gateway, destination.service, exchange);
  return serveOperation(gateway, destination, exchange);
}

function contextOf(
  gateway: GatewayState,
  scope: CredentialScope | null,
  call: Pick<CallContext, "signal" | "memory" | "nextTick" | "userAgent">,
): CallContext {
  const accessKeyId = scope?.accessKeyId ?? null;
  const credential = accessKeyId === null ? undefined : gateway.credentials?.(accessKeyId);
  // An access key of twelve digits is used as the account id, as other self-hosted clouds do.
  const named = accessKeyId !== null && /^\d{12}$/.test(accessKeyId) ? accessKeyId : gateway.accountIdDefault;
  const region = scope === null || scope.region === "" ? gateway.regionDefault : scope.region;
  const accountId = credential?.accountId ?? named;
  return { requestId: randomUUID(), region, accountId, accessKeyId, ...call };
}

async function serveRaw(gateway: GatewayState, service: RawService, exchange: RawExchange): Promise<void> {
  const { request, response, context } = exchange;
  const { protocol } = service;
  service.setHeaders(response, context.requestId);
  try {
    const refusal = gateway.rejectionText?.(request) ?? null;
    if (refusal !== null) throw accessDenied(protocol, refusal);
    const { action, resource, additionalActions: needs = [], handle } = await service.open(exchange);
    for (const each of needs) checkPermit(gateway, context, { action: each, resource: () => "*", protocol });
    checkPermit(gateway, context, { action, resource, protocol });
    await handle();
  } catch (thrown) {
    service.sendError(exchange, thrown);
  }
}

type OperationDestination = Exclude<RequestDestination, { readonly at: "raw" }>;

/** The operation that a request calls, and the protocol of the request. */
type ResolvedOperation =
  | { readonly protocol: "json" | "cbor"; readonly service: ModelledService; readonly operation: string }
  | {
      readonly protocol: "query";
      readonly service: ModelledService;
      readonly operation: string;
      readonly form: QueryForm;
    };

/** Reads, verifies, parses, checks and runs one operation, and sends its response, in this order. */
async function serveOperation(
  gateway: GatewayState,
  destination: OperationDestination,
  exchange: RawExchange,
): Promise<void> {
  const { request, response, context, authenticator, logger, clock } = exchange;
  response.setHeader("x-amzn-RequestId", context.requestId);
  let reply: ErrorTarget = { response, context, ...unresolved(destination), logger, clock };
  try {
    const refusal = gateway.rejectionText?.(request) ?? null;
    if (refusal !== null) throw accessDenied(reply.protocol, refusal);
    if (request.headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
    const { method = "GET", url = "/", headers } = request;
    authenticator?.identify({ method, url, headers });
    const limits = { bytesMax: gateway.operationBodyBytesMax, memory: context.memory };
    const read = await readHashedBody(request, limits.bytesMax, limits.memory);
    const body = await decodeBody(request, read.body, limits);
    const requested = resolve(gateway, destination, request, body);
    const { service, operation, protocol } = requested;
    reply = { ...reply, protocol, errors: service, operation: `${service.model.service}.${operation}` };
    authenticator?.verify({ method, url, headers }, read.sha256Hex, service.scope);
    await run(gateway, requested, exchange, body);
  } catch (thrown) {
    sendAwsError(reply, thrown);
  }
}

function unresolved(
  destination: OperationDestination,
): Pick<ErrorTarget, "errors" | "operation"> & { readonly protocol: OperationProtocol } {
  if (destination.at === "unknown")
    return { errors: null, protocol: destination.protocol, operation: destination.name };
  const errors = destination.service;
  const protocol = destination.at === "form" ? "query" : destination.protocol;
  return { errors, protocol, operation: errors?.model.service ?? "" };
}

function resolve(
  { table }: GatewayState,
  destination: OperationDestination,
  { method = "GET", url = "/" }: IncomingMessage,
  body: Buffer,
): ResolvedOperation {
  if (destination.at === "unknown") {
    const { name, isServed } = destination;
    throw isServed ? noOperation(name, method, pathOf(url)) : unknownService(`'${name}'`);
  }
  // If GET were accepted, an image or a link in any web page could perform an action.
  if (method !== "POST") {
    throw new AwsError("MethodNotAllowed", "Actions require the method POST.", { statusFallback: 405 });
  }
  if (destination.at === "operation") return destination;
  const isPosted = queryValue(url, "Action") === undefined;
  const form = parseForm(isPosted ? body.toString("utf8") : queryText(url));
  const service = destination.service ?? table.findByVersion(form.version);
  if (service === null) throw unknownService(`with API version '${form.version.slice(0, 32)}'`);
  return { protocol: "query", service, operation: form.action, form };
}

const queryText = (url: string) =>
  rawQueryOf(url)
    .map(([name, value]) => `${name}=${value}`)
    .join("&");

const unknownService = (service: string) =>
  new AwsError("UnknownOperationException", `The service ${service} is not part of this server`);

function noOperation(scope: string, method: string, path: string): AwsError {
  const text = `The request is signed for the service '${scope}', which has no operation at ${method} ${path.slice(0, 256)}`;
  return new AwsError("UnknownOperationException", text);
}

async function run(
  gateway: GatewayState,
  resolved: ResolvedOperation,
  exchange: RawExchange,
  body: Buffer,
): Promise<void> {
  const { response, context } = exchange;
  const { service, protocol } = resolved;
  const { model, validationCodes } = service;
  const { operation, row } = await found(resolved);
  if (protocol === "cbor") {
    throw new AwsError("UnsupportedProtocol", "The protocol rpc-v2-cbor is not implemented: use awsJson1_0 or query", {
      statusFallback: 415,
    });
  }
  const isForm = protocol === "query";
  const parsed = isForm
    ? parseQueryInput(model, operation.input, resolved.form)
    : parseJsonInput(model, operation.input, body);
  const code = isForm ? validationCodes.query : validationCodes.json;
  if (operation.input !== undefined) validateInput(model, operation.input, parsed, code);
  // `input` has the type that the row expects, because both the type and the check above come from the same model.
  const input = parsed as never;
  const action = `${service.iamPrefix}:${resolved.operation}`;
  checkPermit(gateway, context, { action, resource: () => row.resource?.(input, context) ?? "*", protocol });
  rejectUnsupportedMembers(parsed, row.unsupportedMembers ?? [], { code });
  const output = (await row.handle(input, context)) as Readonly<Record<string, unknown>>;
  if (isForm) {
    const content = queryResult(model, operation, output, context.requestId);
    // Yields between the handler and the serialization. With a hundred thousand data points, each takes long.
    await context.nextTick();
    return sendResponse(
      response,
      200,
      "text/xml",
      writeXml(`${resolved.operation}Response`, content, model.xmlNamespace ?? null),
    );
  }
  const eventMember = findEventMember(model, operation);
  if (eventMember !== null) {
    const events = output[eventMember.name] as AsyncIterable<object>;
    return sendEvents({ response, signal: context.signal, model, logger: exchange.logger }, eventMember, events);
  }
  const document = operation.output === undefined ? {} : toJson(model, { shape: operation.output }, output);
  sendResponse(response, operation.status ?? 200, jsonType(model), JSON.stringify(document));
}

async function found({
  service,
  operation: name,
  protocol,
}: ResolvedOperation): Promise<{ operation: OperationModel; row: OperationRow<never> }> {
  const { model, operations } = service;
  const row = Object.hasOwn(operations, name) ? operations[name] : undefined;
  if (row === undefined) throw unknownOperation(service, name, protocol);
  const operation = model.operations[name];
  assert(operation !== undefined, `${model.service} publishes no operation ${name}`);
  return { operation, row: typeof row === "function" ? await row() : row };
}

function unknownOperation(service: ModelledService, operation: string, protocol: OperationProtocol): AwsError {
  const { model, unsupportedOperations: refusals = [] } = service;
  const isKnown = Object.hasOwn(model.operations, operation) || model.otherOperations.includes(operation);
  if (!isKnown && protocol === "query") {
    return new AwsError("InvalidAction", `The action ${operation} is not valid for this web service.`);
  }
  const name = `${model.service}.${operation}`;
  const advice = isKnown ? adviceFor(operation, refusals) : null;
  const notBuilt = `The operation ${name} is not implemented by this server${advice === null ? "" : `: ${advice}.`}`;
  const message = isKnown ? notBuilt : `Unknown operation ${name}`;
  return new AwsError(protocol === "query" ? "InvalidAction" : "UnknownOperationException", message);
}

/**
 * Throws AwsError if the caller may not perform the action of a row. Without authentication, every caller may perform
 * every action.
 */
function checkPermit(
  gateway: GatewayState,
  { accessKeyId }: CallContext,
  requested: { readonly action: string; readonly resource: () => string; readonly protocol: WireProtocol },
): void {
  if (gateway.authenticator === null || accessKeyId === null) return;
  const { action, protocol } = requested;
  const resource = requested.resource();
  if (gateway.isAllowed?.(accessKeyId, action, resource) ?? true) return;
  throw accessDenied(protocol, `User: ${accessKeyId} is not authorized to perform: ${action} on resource: ${resource}`);
}

/** Returns the error with the code that clients of the protocol expect. */
function accessDenied(protocol: WireProtocol, text: string): AwsError {
  const isXml = protocol === "query" || protocol === "rest-xml";
  return new AwsError(isXml ? "AccessDenied" : "AccessDeniedException", text, { statusFallback: 403 });
}
