import type { IncomingMessage, ServerResponse } from "node:http";
import { AwsError, diskFault, diskText, systemClock } from "../../base/index.ts";
import { SignatureFailure, queryValue, rawQueryOf } from "../../signing/index.ts";
import { serviceModels, type ServiceModel } from "../spec/index.ts";
import { decodeBody, readHashedBody } from "./body.ts";
import { serviceOfVersion, type Destination, type WireProtocol } from "./detect.ts";
import { errorDocument, signatureError, validationCode, wireError } from "./errors.ts";
import type { GatewayState } from "./gateway.ts";
import type { CallContext } from "./handlers.ts";
import { parseJsonInput, toJson } from "./json-protocol.ts";
import { closeIfUnread } from "./last-answer.ts";
import { parseForm, parseQueryInput, writeQueryResult, type QueryForm } from "./query-protocol.ts";
import { validateInput } from "./validate.ts";
import { writeXml } from "./xml.ts";

export interface OperationRequest {
  readonly destination: Destination;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly context: CallContext;
}

/** Where an answer goes and how it is told. */
export interface Reply {
  readonly response: ServerResponse;
  readonly context: CallContext;
  readonly service: string;
  readonly protocol: WireProtocol;
  readonly operation: string;
}

interface Call {
  readonly reply: Reply;
  readonly form: QueryForm | null;
}

/** Reads, verifies, parses, checks, runs and answers one operation, in this order. */
export async function serveOperation(gateway: GatewayState, call: OperationRequest): Promise<void> {
  const { request, response, context } = call;
  const { memory } = context;
  let reply: Reply = { response, context, ...unresolved(call.destination) };
  try {
    const { method = "GET", url = "/", headers } = request;
    gateway.authenticator?.identify({ method, url, headers });
    const read = await readHashedBody(request, gateway.limits.operationBodyBytesMax, memory);
    const raw = read.body;
    const body = await decodeBody(request, raw, { bytesMax: gateway.limits.operationBodyBytesMax, memory });
    const resolved = resolve(gateway, call, body);
    reply = resolved.reply;
    gateway.authenticator?.verify({ method, url, headers }, read.sha256Hex);
    await run(gateway, resolved, body);
  } catch (thrown) {
    respondError(gateway, reply, thrown instanceof SignatureFailure ? signatureError(thrown, reply.protocol) : thrown);
  }
}

function unresolved(destination: Destination): Pick<Reply, "service" | "protocol" | "operation"> {
  switch (destination.at) {
    case "operations":
      return destination;
    case "unknown":
      return { service: destination.service, protocol: destination.protocol, operation: "" };
    case "form":
      return { service: destination.service ?? "", protocol: "query", operation: "" };
    default:
      return { service: "", protocol: "json", operation: "" };
  }
}

function resolve(gateway: GatewayState, call: OperationRequest, body: Buffer): Call {
  const { destination, request, response, context } = call;
  // An image or a link in any page is a GET.
  if (request.method !== "POST" && destination.at !== "unknown") {
    throw new AwsError("MethodNotAllowed", "Actions are carried out for POST only.", { statusFallback: 405 });
  }
  if (destination.at === "operations") return { reply: { response, context, ...destination }, form: null };
  const reply = { response, context, ...unresolved(destination) };
  if (destination.at !== "form") throw unknownService(reply.service);
  const posted = queryValue(request.url ?? "/", "Action") === undefined;
  const form = parseForm(posted ? body.toString("utf8") : queryText(request.url ?? "/"));
  const service = destination.service ?? serviceOfVersion(form.version);
  if (service === undefined) throw unknownService(`with API version '${form.version.slice(0, 32)}'`);
  if (!Object.hasOwn(gateway.services.operations, service)) throw unknownService(service);
  return { reply: { ...reply, service, operation: form.action }, form };
}

const queryText = (url: string) =>
  rawQueryOf(url)
    .map(([name, value]) => `${name}=${value}`)
    .join("&");

const unknownService = (service: string) =>
  new AwsError("UnknownOperationException", `The service '${service}' is not part of this server`);

async function run(gateway: GatewayState, call: Call, body: Buffer): Promise<void> {
  const { reply, form } = call;
  const model = serviceModels[reply.service as keyof typeof serviceModels];
  const handlers = gateway.services.operations[reply.service as keyof GatewayState["services"]["operations"]];
  const operation = Object.hasOwn(model.operations, reply.operation) ? model.operations[reply.operation] : undefined;
  const handler =
    handlers !== undefined && Object.hasOwn(handlers, reply.operation) ? handlers[reply.operation] : undefined;
  if (operation === undefined || handler === undefined) throw unknownOperation(model, reply);
  if (reply.protocol === "cbor") {
    throw new AwsError("UnsupportedProtocol", "The protocol rpc-v2-cbor is not built: use awsJson1_0 or query", {
      statusFallback: 415,
    });
  }
  reply.context.permit(`${reply.service}:${reply.operation}`);
  const input =
    form === null ? parseJsonInput(model, operation.input, body) : parseQueryInput(model, operation.input, form);
  if (operation.input !== undefined)
    validateInput(model, operation.input, input, validationCode(model.service, reply.protocol));
  const output = await handler(input as never, reply.context);
  if (form !== null) {
    return send(
      reply,
      200,
      "text/xml",
      writeQueryResult(model, reply.operation, operation, output, reply.context.requestId),
    );
  }
  const document = operation.output === undefined ? {} : toJson(model, { shape: operation.output }, output);
  send(reply, operation.status ?? 200, jsonType(model), JSON.stringify(document));
}

function unknownOperation(model: ServiceModel, reply: Reply): AwsError {
  const known = Object.hasOwn(model.operations, reply.operation) || model.otherOperations.includes(reply.operation);
  if (!known && reply.protocol === "query") {
    return new AwsError("InvalidAction", `The action ${reply.operation} is not valid for this web service.`);
  }
  const name = `${model.service}.${reply.operation}`;
  const message = known ? `The operation ${name} is not built in this server` : `Unknown operation ${name}`;
  return new AwsError(reply.protocol === "query" ? "InvalidAction" : "UnknownOperationException", message);
}

const jsonType = (model: ServiceModel | null) => `application/x-amz-json-${model?.jsonVersion ?? "1.1"}`;

/** A disk that takes no more is no secret and no bug; of all else the log has the details. */
function internalText(thrown: unknown): string {
  const fault = diskFault(thrown);
  if (fault === null) return "An internal error occurred; the server's log has the details.";
  const text = diskText(fault, "the platform's data");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** Writes what was thrown in the protocol of the request; anything but an AwsError is a bug, logged and told as InternalFailure. */
export function respondError(gateway: GatewayState, reply: Reply, thrown: unknown): void {
  const { response, context } = reply;
  if (!(thrown instanceof AwsError)) {
    if (!context.signal.aborted) {
      const stack = thrown instanceof Error ? thrown.stack : String(thrown);
      gateway.logger.error("an operation failed", { operation: `${reply.service}.${reply.operation}`, error: stack });
    }
  }
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  closeIfUnread(response, gateway.clock ?? systemClock);
  const model = Object.hasOwn(serviceModels, reply.service)
    ? serviceModels[reply.service as keyof typeof serviceModels]
    : null;
  const aws =
    thrown instanceof AwsError
      ? thrown
      : new AwsError("InternalFailure", internalText(thrown), { cause: thrown, statusFallback: 500 });
  const error = wireError(model, aws);
  if (error.status === 503) response.setHeader("retry-after", "1");
  if (reply.protocol === "query") {
    const detail = { Type: error.fault ? "Receiver" : "Sender", Code: error.code, Message: error.message };
    const text = writeXml(
      "ErrorResponse",
      { Error: detail, RequestId: context.requestId },
      model?.xmlNamespace ?? null,
    );
    return send(reply, error.status, "text/xml", text);
  }
  if (model?.queryCompatible === true) {
    response.setHeader("x-amzn-query-error", `${error.code};${error.fault ? "Receiver" : "Sender"}`);
  }
  response.setHeader("x-amzn-errortype", error.type);
  const rest = reply.protocol === "rest-json";
  const document = errorDocument(model, error);
  send(
    reply,
    error.status,
    rest ? "application/json" : jsonType(model),
    JSON.stringify({ __type: error.type, ...document }),
  );
}

function send(reply: Reply, status: number, contentType: string, text: string): void {
  const body = Buffer.from(text);
  reply.response.writeHead(status, { "Content-Type": contentType, "Content-Length": body.byteLength });
  reply.response.end(body);
}
