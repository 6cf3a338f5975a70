import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { AwsError, readToBuffer, reserveCallMemory, type ByteLease } from "@galatea/base";
import {
  bufferedBytesMax,
  payloadTooLarge,
  type Hosting,
  type InvocationReply,
  type InvocationRequest,
} from "@galatea/hosting";
import type { CallContext } from "../../wire/index.ts";
import { constraintError } from "./runtime-path.ts";

export interface InvokeCall {
  readonly endpointName: string;
  /** The request, whose signature is already verified. */
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly context: CallContext;
  readonly receivedNs: number;
}

const componentHeader = "x-amzn-sagemaker-inference-component";
const targetContainerHeader = "x-amzn-sagemaker-target-container-hostname";

const sessionHeader = "x-amzn-sagemaker-session-id";
/** Patterns of the SessionId header by operation. A streamed invocation cannot open a session. */
const sessionPatterns = {
  InvokeEndpoint: "^(NEW_SESSION)$|^[a-zA-Z0-9](-*[a-zA-Z0-9])*$",
  InvokeEndpointWithResponseStream: "^[a-zA-Z0-9](-*[a-zA-Z0-9])*$",
} as const;

interface HeaderRow {
  readonly name: string;
  readonly member: string;
  readonly lengthMax: number;
  /** True if the header is forwarded to the container. */
  readonly passed: boolean;
}

/** The headers that are read or forwarded to the container. All other headers are dropped. */
const headers: readonly HeaderRow[] = [
  { name: "content-type", member: "contentType", lengthMax: 1024, passed: true },
  { name: "x-amzn-sagemaker-custom-attributes", member: "customAttributes", lengthMax: 1024, passed: true },
  { name: "x-amzn-sagemaker-target-model", member: "targetModel", lengthMax: 1024, passed: true },
  { name: "x-amzn-sagemaker-inference-id", member: "inferenceId", lengthMax: 64, passed: true },
  { name: sessionHeader, member: "sessionId", lengthMax: 256, passed: true },
  { name: "x-amzn-sagemaker-target-variant", member: "targetVariant", lengthMax: 63, passed: false },
  { name: componentHeader, member: "InferenceComponentName", lengthMax: 63, passed: false },
  { name: targetContainerHeader, member: "targetContainerHostname", lengthMax: 63, passed: false },
];

/** Names of the header that contains Accept, by operation. */
const acceptNames = { InvokeEndpoint: "accept", InvokeEndpointWithResponseStream: "x-amzn-sagemaker-accept" } as const;

/**
 * Headers that would change how a request is processed. They are rejected, because ignoring them would mislead the
 * caller.
 */
const refusedHeaders: readonly { readonly name: string; readonly member: string }[] = [
  { name: "x-amzn-sagemaker-enable-explanations", member: "EnableExplanations" },
];

export interface InvocationOptions {
  readonly hosting: Pick<Hosting, "invoke">;
  /** Maximum size of a request's body, in bytes. A body is buffered completely if its signature must be verified. */
  readonly requestBytesMax: number;
  /** Aborts, with an error for clients, when streamed responses must end because the platform shuts down. */
  readonly streamAbort: AbortSignal;
}

export interface RuntimeOptions extends InvocationOptions {
  readonly hosting: Hosting;
}

/** Invokes an endpoint. In both directions, short bodies are buffered and long bodies are streamed. */
export async function invokeEndpoint({ hosting, requestBytesMax }: InvocationOptions, call: InvokeCall): Promise<void> {
  const requested = readInvocation(call, "InvokeEndpoint", requestBytesMax);
  const reply = await hosting.invoke(call.endpointName, call.context.accountId, requested);
  respond(call.response, reply, call.context);
}

/** Returns the invocation that hosting runs. Throws AwsError for invalid headers. */
export function readInvocation(
  { request, context, receivedNs }: InvokeCall,
  operation: keyof typeof acceptNames,
  requestBytesMax: number,
): InvocationRequest {
  const passed = readHeaders(request);
  const accepted = readHeader(request, acceptNames[operation], "accept", 1024);
  if (accepted !== null) passed["accept"] = accepted;
  const session = passed[sessionHeader];
  const pattern = sessionPatterns[operation];
  if (session !== undefined && !new RegExp(pattern).test(session)) {
    throw constraintError("sessionId", session, `Member must satisfy regular expression pattern: ${pattern}`);
  }
  const length = declaredLength(request, requestBytesMax);
  // A streamed body needs its length in a header; for a buffered body, the HTTP client sets the header.
  if (length !== null && length > bufferedBytesMax) passed["content-length"] = String(length);
  return {
    headers: passed,
    targetModel: utf8Header(request, "x-amzn-sagemaker-target-model"),
    targetVariant: utf8Header(request, "x-amzn-sagemaker-target-variant"),
    declaredBytes: length,
    inferenceComponent: utf8Header(request, componentHeader),
    targetContainer: utf8Header(request, targetContainerHeader),
    ...(session === undefined ? {} : { session }),
    isStreamed: operation === "InvokeEndpointWithResponseStream",
    body: () => readBody(request, { length, bytesMax: requestBytesMax, memory: context.memory }),
    memory: context.memory,
    receivedNs,
    signal: context.signal,
  };
}

function readHeaders(request: IncomingMessage): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const { name, member, lengthMax, passed: isPassed } of headers) {
    const value = readHeader(request, name, member, lengthMax);
    if (isPassed && value !== null) passed[name] = value;
  }
  for (const { name, member } of refusedHeaders) {
    if (request.headers[name] === undefined) continue;
    throw new AwsError("ValidationError", `${member} is not supported by this platform yet.`);
  }
  return passed;
}

function readHeader(request: IncomingMessage, name: string, member: string, lengthMax: number): string | null {
  const value = request.headers[name];
  if (typeof value !== "string") return null;
  if (value.length <= lengthMax) return value;
  throw constraintError(member, value, `Member must have length less than or equal to ${lengthMax}`);
}

/** Decodes a header as UTF-8; Node decodes headers as Latin-1. */
function utf8Header(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name];
  return typeof value === "string" && value !== "" ? Buffer.from(value, "latin1").toString("utf8") : null;
}

/** Returns the announced length of the body. Null for a chunked body, whose length is counted as it arrives. */
function declaredLength(request: IncomingMessage, bytesMax: number): number | null {
  const text = request.headers["content-length"];
  if (text === undefined) return request.headers["transfer-encoding"] === undefined ? 0 : null;
  const length = Number(text);
  if (length > bytesMax) throw payloadTooLarge(bytesMax);
  return length;
}

interface BodyOptions {
  readonly length: number | null;
  readonly bytesMax: number;
  readonly memory: ByteLease;
}

async function readBody(
  request: IncomingMessage,
  { length, bytesMax, memory }: BodyOptions,
): Promise<Buffer | Readable> {
  if (length !== null && length > bufferedBytesMax) return request;
  // A body that was buffered to verify its signature has already reserved its memory.
  const isHeld = memory.bytes > 0;
  if (!isHeld && length !== null) reserveCallMemory(memory, length);
  const take = isHeld || length !== null ? null : (bytes: number) => reserveCallMemory(memory, bytes);
  return await readToBuffer(request, bytesMax, () => payloadTooLarge(bytesMax), take);
}

function respond(response: ServerResponse, reply: InvocationReply, context: CallContext): void {
  response.statusCode = 200;
  if (reply.contentType !== null) response.setHeader("content-type", reply.contentType);
  response.setHeader("x-Amzn-Invoked-Production-Variant", reply.variantName);
  if (reply.customAttributes !== null) {
    response.setHeader("x-amzn-sagemaker-custom-attributes", reply.customAttributes);
  }
  if (reply.openedSession !== null) response.setHeader("x-amzn-sagemaker-new-session-id", reply.openedSession.text);
  if (reply.closedSession !== null) response.setHeader("x-amzn-sagemaker-closed-session-id", reply.closedSession);
  if (Buffer.isBuffer(reply.body)) {
    response.setHeader("content-length", reply.body.length);
    response.end(reply.body);
    return;
  }
  if (reply.byteLength !== null && Number.isFinite(reply.byteLength))
    response.setHeader("content-length", reply.byteLength);
  const { body, done, failed } = reply;
  // The response's head is already sent, so an error of the container's response can only close the connection.
  body.once("error", (error) => {
    failed(error);
    response.destroy();
  });
  body.once("close", done);
  context.signal.addEventListener("abort", () => body.destroy(), { once: true });
  body.pipe(response);
}
