import type { IncomingMessage } from "node:http";
import { AwsError, readToBuffer, reserveCallMemory } from "@galatea/base";
import { payloadTooLarge, type AsyncRequest, type Hosting } from "@galatea/hosting";
import type { InvokeCall } from "./invoke-endpoint.ts";
import { constraintError } from "./runtime-path.ts";

/** Maximum size of an input that the request itself contains. */
const inlineBytesMax = 128_000;

interface TextRule {
  readonly header: string;
  readonly member: string;
  readonly lengthMin: number;
  readonly lengthMax: number;
  readonly pattern: RegExp;
}

const ascii = /^[\0-\x7f]*$/;
const rules = {
  contentType: { header: "content-type", member: "contentType", lengthMin: 0, lengthMax: 1024, pattern: ascii },
  accept: { header: "accept", member: "accept", lengthMin: 0, lengthMax: 1024, pattern: ascii },
  customAttributes: {
    header: "custom-attributes",
    member: "customAttributes",
    lengthMin: 0,
    lengthMax: 1024,
    pattern: ascii,
  },
  inferenceId: {
    header: "inference-id",
    member: "inferenceId",
    lengthMin: 1,
    lengthMax: 64,
    pattern: /^\S[\x20-\x7e]*$/,
  },
  inputLocation: {
    header: "inputlocation",
    member: "inputLocation",
    lengthMin: 1,
    lengthMax: 1024,
    pattern: /^(https|s3):\/\/([^/]+)\/?(.*)$/,
  },
  extension: {
    header: "s3outputpathextension",
    member: "s3OutputPathExtension",
    lengthMin: 1,
    lengthMax: 512,
    pattern: /^(?!s3:|https:)[a-zA-Z0-9!_.*'()/-]+$/,
  },
  fileName: {
    header: "filename",
    member: "filename",
    lengthMin: 1,
    lengthMax: 32,
    pattern: /^(?!.*\..*\.)[a-zA-Z0-9][a-zA-Z0-9-_.]*$/,
  },
} as const satisfies Readonly<Record<string, TextRule>>;

const seconds = {
  ttl: { header: "requestttlseconds", member: "requestTTLSeconds", min: 60, max: 21_600 },
  timeLimit: { header: "invocationtimeoutseconds", member: "invocationTimeoutSeconds", min: 1, max: 3600 },
} as const;

/**
 * Records a request and responds with 202. Later the result is stored as an object in S3, and a notification is
 * published.
 */
export interface AsyncInvokedHosting {
  readonly asyncInferences: Pick<Hosting["asyncInferences"], "accept">;
}

export async function invokeEndpointAsync(hosting: AsyncInvokedHosting, call: InvokeCall): Promise<void> {
  const { response, context, endpointName } = call;
  const requested = await readRequest(call);
  const ticket = await hosting.asyncInferences.accept(endpointName, context, requested);
  const body = JSON.stringify({ InferenceId: ticket.inferenceId });
  response.statusCode = 202;
  response.setHeader("content-type", "application/json");
  response.setHeader("content-length", Buffer.byteLength(body));
  if (ticket.outputUrl !== null) response.setHeader("X-Amzn-SageMaker-OutputLocation", ticket.outputUrl);
  if (ticket.failureUrl !== null) response.setHeader("X-Amzn-SageMaker-FailureLocation", ticket.failureUrl);
  response.end(body);
}

async function readRequest({ request, context }: InvokeCall): Promise<AsyncRequest> {
  const texts = {
    contentType: textOf(request, rules.contentType),
    accept: textOf(request, rules.accept),
    customAttributes: textOf(request, rules.customAttributes),
  };
  const inputUrl = textOf(request, rules.inputLocation);
  const read = {
    inferenceId: textOf(request, rules.inferenceId),
    ttlSeconds: numberOf(request, seconds.ttl),
    timeLimitSeconds: numberOf(request, seconds.timeLimit),
    extension: textOf(request, rules.extension),
    fileName: textOf(request, rules.fileName),
  };
  const refusal = () => payloadTooLarge(inlineBytesMax);
  if (Number(request.headers["content-length"] ?? 0) > inlineBytesMax) throw refusal();
  const { memory } = context;
  // A body that was buffered to verify its signature has already reserved its memory.
  const take = memory.bytes > 0 ? null : (bytes: number) => reserveCallMemory(memory, bytes);
  const body = await readToBuffer(request, inlineBytesMax, refusal, take);
  if ((inputUrl === null) === (body.length === 0)) {
    const text = "Provide exactly one of Body and InputLocation: the input itself, or its location in Amazon S3.";
    throw new AwsError("ValidationError", text);
  }
  const { contentType, accept, customAttributes } = texts;
  const headers = {
    ...(contentType === null ? {} : { "content-type": contentType }),
    ...(accept === null ? {} : { accept }),
    ...(customAttributes === null ? {} : { "x-amzn-sagemaker-custom-attributes": customAttributes }),
  };
  return { ...read, headers, inputUrl, body: inputUrl === null ? body : null };
}

function textOf(request: IncomingMessage, { header, member, lengthMin, lengthMax, pattern }: TextRule): string | null {
  const value = request.headers[`x-amzn-sagemaker-${header}`];
  if (typeof value !== "string") return null;
  if (value.length > lengthMax) {
    throw constraintError(member, value, `Member must have length less than or equal to ${lengthMax}`);
  }
  if (value.length < lengthMin) {
    throw constraintError(member, value, `Member must have length greater than or equal to ${lengthMin}`);
  }
  if (pattern.test(value)) return value;
  throw constraintError(member, value, `Member must satisfy regular expression pattern: ${pattern.source}`);
}

function numberOf(
  request: IncomingMessage,
  { header, member, min, max }: (typeof seconds)[keyof typeof seconds],
): number | null {
  const value = request.headers[`x-amzn-sagemaker-${header}`];
  if (typeof value !== "string") return null;
  const number = /^-?\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
  if (Number.isNaN(number))
    throw new AwsError("ValidationError", `${member} must be a whole number, found: ${value.slice(0, 64)}`);
  if (number < min) throw constraintError(member, value, `Member must have value greater than or equal to ${min}`);
  if (number > max) throw constraintError(member, value, `Member must have value less than or equal to ${max}`);
  return number;
}
