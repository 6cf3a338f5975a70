import type { ServerResponse } from "node:http";
import { AwsError, readToBuffer, reserveCallMemory } from "@galatea/base";
import { responseChunks, payloadTooLarge, type InvocationReply, type InvocationRequest } from "@galatea/hosting";
import { StreamWriter } from "../../wire/index.ts";
import { readInvocation, type InvokeCall, type RuntimeOptions } from "./invoke-endpoint.ts";
import { modelNotFound, openAiError } from "./openai-errors.ts";
import type { OpenAiPath } from "./openai-routes.ts";

/** A call of OpenAI's API, with the endpoint that it invokes. */
export interface OpenAiCall extends InvokeCall {
  readonly path: OpenAiPath;
  /** The invocation that hosting runs; null for a listing. */
  readonly invocation: InvocationRequest | null;
}

/** Opens a call. Reads the body only if nothing but its `model` names the endpoint. */
export async function openOpenAiCall(
  { hosting, requestBytesMax }: RuntimeOptions,
  call: Omit<InvokeCall, "endpointName">,
  target: OpenAiPath,
): Promise<OpenAiCall> {
  const { endpointName, operation, path } = target;
  const known = { ...call, endpointName: endpointName ?? target.model?.split("/")[0] ?? "", path: target };
  if (operation === "ListModels" || operation === "RetrieveModel") return { ...known, invocation: null };
  const read = readInvocation(known, "InvokeEndpoint", requestBytesMax);
  const inferenceComponent = target.componentName ?? read.inferenceComponent ?? null;
  const invocation = { ...read, inferenceComponent, isStreamed: true, containerPath: path };
  if (endpointName !== null) return { ...known, invocation };
  const { memory } = call.context;
  const isHeld = memory.bytes > 0;
  const take = isHeld ? null : (bytes: number) => reserveCallMemory(memory, bytes);
  const body = await readToBuffer(call.request, requestBytesMax, () => payloadTooLarge(requestBytesMax), take);
  const named = namedModel(body);
  // The body is buffered, so the HTTP client sets its length.
  const { "content-length": _length, ...headers } = invocation.headers;
  // The name after the slash is an inference component if the endpoint has one with this name, else a target model.
  const isComponent = named.part !== null && hosting.components.namesOn(named.endpointName).includes(named.part);
  const modelTarget = isComponent ? { inferenceComponent: named.part } : { targetModel: named.part };
  const held = { ...invocation, headers, ...modelTarget, body: () => Promise.resolve(body) };
  return { ...known, endpointName: named.endpointName, invocation: held };
}

/**
 * Parses the `model` of a body: `endpoint`, or `endpoint/name`. `name` is an inference component, or a model of a
 * multi-model endpoint.
 */
function namedModel(body: Buffer): { readonly endpointName: string; readonly part: string | null } {
  let model: unknown;
  try {
    const parsed: unknown = JSON.parse(body.toString("utf8"));
    model = typeof parsed === "object" && parsed !== null && "model" in parsed ? parsed.model : undefined;
  } catch (cause) {
    throw new AwsError("invalid_json", "The body is not JSON.", { cause });
  }
  if (typeof model !== "string" || model === "") {
    throw new AwsError("missing_required_parameter", "The body has no `model`: set it to the name of an endpoint.");
  }
  const slash = model.indexOf("/");
  if (slash === -1) return { endpointName: model, part: null };
  return { endpointName: model.slice(0, slash), part: model.slice(slash + 1) };
}

/** Streams the container's response: JSON, or server-sent events. */
export async function forwardOpenAiCall(
  { hosting, streamAbort: cutting }: RuntimeOptions,
  call: OpenAiCall,
): Promise<void> {
  const { response, context, invocation, endpointName } = call;
  if (invocation === null) throw new Error("bug: a listing has no request for a container");
  checkModelExists(hosting.isRunning(endpointName), endpointName);
  const signal = AbortSignal.any([invocation.signal, cutting]);
  const reply = await hosting.invoke(endpointName, context.accountId, { ...invocation, signal });
  let writer: StreamWriter | null = null;
  let end = "";
  try {
    for await (const chunk of responseChunks(reply)) {
      writer ??= begin(response, reply, context.signal);
      await writer.write(chunk);
      end = (end + chunk.toString("latin1", Math.max(0, chunk.length - 2))).slice(-2);
    }
    writer ??= begin(response, reply, context.signal);
  } catch (error) {
    if (writer === null) throw error;
    if (context.signal.aborted) return;
    // Between two events, the error can be sent as an event. Otherwise only closing the connection can report it.
    if (!isOfEvents(reply) || end !== "\n\n") return void response.destroy();
    response.write(`data: ${JSON.stringify(openAiError(error).document)}\n\n`);
  }
  writer.end();
}

export function checkModelExists(isThere: boolean, model: string): void {
  if (isThere) return;
  const text = `The model ${JSON.stringify(model.slice(0, 256))} does not exist: no endpoint of that name is in service.`;
  throw new AwsError(modelNotFound, text, { statusFallback: 404 });
}

const isOfEvents = ({ contentType }: InvocationReply) => contentType?.startsWith("text/event-stream") === true;

function begin(response: ServerResponse, reply: InvocationReply, signal: AbortSignal): StreamWriter {
  response.statusCode = 200;
  if (reply.contentType !== null) response.setHeader("content-type", reply.contentType);
  if (reply.byteLength !== null) response.setHeader("content-length", reply.byteLength);
  // Without this header, a proxy may buffer a response that can be cached, and delay its events.
  if (isOfEvents(reply)) response.setHeader("cache-control", "no-cache");
  response.setHeader("x-Amzn-Invoked-Production-Variant", reply.variantName);
  return new StreamWriter(response, signal);
}
