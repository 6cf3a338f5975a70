import type { ServerResponse } from "node:http";
import { AwsError } from "@galatea/base";
import { responseChunks, type InvocationReply } from "@galatea/hosting";
import { encodeEvent, encodeEventHeaders, eventStreamType, StreamWriter } from "../../wire/index.ts";
import { readInvocation, type InvokeCall, type InvocationOptions } from "./invoke-endpoint.ts";

const partHeaders = encodeEventHeaders([
  [":message-type", "event"],
  [":event-type", "PayloadPart"],
  [":content-type", "application/octet-stream"],
]);

/**
 * Responds with an event stream, which begins with the first chunk of the container's response. A failure before that
 * is sent as an ordinary error response, and a failure after that as an exception event.
 */
export async function invokeWithStream(
  { hosting, requestBytesMax, streamAbort: cutting }: InvocationOptions,
  call: InvokeCall,
): Promise<void> {
  const { response, context } = call;
  const read = readInvocation(call, "InvokeEndpointWithResponseStream", requestBytesMax);
  const requested = { ...read, signal: AbortSignal.any([read.signal, cutting]) };
  const reply = await hosting.invoke(call.endpointName, context.accountId, requested);
  let writer: StreamWriter | null = null;
  try {
    for await (const chunk of responseChunks(reply)) {
      writer ??= beginEvents(response, reply, context.signal);
      await writer.write(encodeEvent(partHeaders, chunk));
    }
    writer ??= beginEvents(response, reply, context.signal);
  } catch (error) {
    if (writer === null) throw error;
    if (context.signal.aborted) return;
    response.write(exceptionEvent(error));
  }
  writer.end();
}

function beginEvents(response: ServerResponse, reply: InvocationReply, signal: AbortSignal): StreamWriter {
  response.statusCode = 200;
  response.setHeader("content-type", eventStreamType);
  response.setHeader("x-Amzn-Invoked-Production-Variant", reply.variantName);
  if (reply.contentType !== null) response.setHeader("x-amzn-sagemaker-content-type", reply.contentType);
  if (reply.customAttributes !== null) {
    response.setHeader("x-amzn-sagemaker-custom-attributes", reply.customAttributes);
  }
  return new StreamWriter(response, signal);
}

/** SageMaker's maximum length of messages. */
const messageCharsMax = 2048;

/**
 * Returns the exception event for an error. Errors that are not the model's are reported as internal failures, and only
 * known ones show their text.
 */
function exceptionEvent(error: unknown): Buffer {
  const isModels = error instanceof AwsError && error.code === "ModelStreamError";
  const isReported = isModels || (error instanceof AwsError && error.code === "InternalStreamFailure");
  const headers = encodeEventHeaders([
    [":message-type", "exception"],
    [":exception-type", isModels ? "ModelStreamError" : "InternalStreamFailure"],
    [":content-type", "application/json"],
  ]);
  const text = isReported ? error.message : "The stream failed; the server's log has the details.";
  const members = isModels ? error.members : {};
  return encodeEvent(headers, Buffer.from(JSON.stringify({ ...members, Message: text.slice(0, messageCharsMax) })));
}
