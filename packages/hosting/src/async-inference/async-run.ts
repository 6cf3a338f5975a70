import { Readable, Transform } from "node:stream";
import {
  AwsError,
  ByteLease,
  diskFaultOf,
  openDeadline,
  readToBuffer,
  reserveCallMemory,
  type ByteBudget,
  type Clock,
} from "@galatea/base";
import type { ObjectStore } from "../objects/index.ts";
import {
  ContainerConnectionLost,
  bufferedBytesMax,
  InvocationTimeout,
  timeoutText,
  payloadTooLarge,
  type InvocationReply,
  type InvocationRequest,
} from "../invocations/index.ts";
import type { AsyncFailure, AsyncInvocation } from "./async-invocation.ts";
import type { AsyncRequestMetric } from "./async-metrics.ts";
import { instanceFromLogStream, type AsyncRunTrace } from "./data-log.ts";
import { s3Url } from "./output-locations.ts";
import { messageResponseBytesMax, type AsyncResult } from "./result-message.ts";

export interface AsyncRunOptions {
  readonly store: Pick<ObjectStore, "get" | "put">;
  /** Reads an input that was in the body of the request; resolves with null if its record does not exist. */
  readonly inline: () => Promise<Buffer | null>;
  readonly invoke: (request: InvocationRequest) => Promise<InvocationReply>;
  readonly record: (metric: AsyncRequestMetric, value: number) => void;
  /** Data for the log line of this run. The run fills it in. */
  readonly trace: AsyncRunTrace;
  readonly memory: ByteBudget;
  readonly bodyBytesMax: number;
  readonly clock: Clock;
}

/** The outcome of one run of a request. */
export type AsyncRunOutcome =
  | { readonly kind: "answered"; readonly result: Extract<AsyncResult, { readonly is: "completed" }> }
  | { readonly kind: "refused" | "lost"; readonly failure: AsyncFailure }
  /** A temporary failure: the request must run again later. */
  | { readonly kind: "interrupted"; readonly why: unknown };

/** An error of the input or of the output location. A retry would fail in the same way. */
class PermanentFault extends Error {}

/**
 * Processes an asynchronous request once: reads the input, invokes an instance and stores the response. Failures are
 * returned as an outcome.
 */
export async function runAsyncInvocation(
  invocation: AsyncInvocation,
  options: AsyncRunOptions,
  closing: AbortSignal,
): Promise<AsyncRunOutcome> {
  const { clock, memory } = options;
  const late = () => new InvocationTimeout(timeoutText("primary"));
  using limit = openDeadline({ clock, afterMs: invocation.timeLimitMs, signal: closing, createError: late });
  using lease = new ByteLease(memory);
  let input: OpenedInput | null = null;
  try {
    input = await openInput(invocation, options, lease);
    const askedNs = clock.monotonicNs();
    const reply = await options.invoke(
      requestOf(invocation, { input, lease, signal: limit.signal, clock, parts: options }),
    );
    options.trace.times.ModelLatency = (clock.monotonicNs() - askedNs) / 1000;
    try {
      return { kind: "answered", result: await store(invocation, reply, options, limit.signal) };
    } catch (error) {
      if (limit.hasExpired) reply.failed(error);
      throw error;
    } finally {
      reply.done();
    }
  } catch (error) {
    const isLate = limit.hasExpired;
    return outcomeOfError(isLate ? (limit.signal.reason as Error) : error, closing);
  } finally {
    if (input?.body instanceof Readable) input.body.destroy();
  }
}

/** The opened input of a request. */
interface OpenedInput {
  readonly body: Buffer | Readable;
  readonly byteLength: number;
  /** Content type of the input's S3 object. Null for an input in the body of the request. */
  readonly contentType: string | null;
}

function requestOf(
  { headers, timeLimitMs }: AsyncInvocation,
  on: {
    readonly input: OpenedInput;
    readonly lease: ByteLease;
    readonly signal: AbortSignal;
    readonly clock: Clock;
    readonly parts: AsyncRunOptions;
  },
): InvocationRequest {
  const { input, lease: memory, signal, clock, parts } = on;
  return {
    headers: {
      ...headers,
      ...contentTypeOf(headers, input),
      ...(input.body instanceof Readable ? { "content-length": String(input.byteLength) } : {}),
    },
    targetModel: null,
    targetVariant: null,
    targetContainer: null,
    isStreamed: false,
    body: () => Promise.resolve(input.body),
    memory,
    // The container's time limit is one second longer than the limit of the run. The limit of the run then aborts
    // first, with its specific error.
    bounds: {
      answerMsMax: timeLimitMs + 1000,
      responseBytesMax: parts.bodyBytesMax,
      onContainer: (logStreamArn) => (parts.trace.instance = instanceFromLogStream(logStreamArn)),
    },
    receivedNs: clock.monotonicNs(),
    signal,
  };
}

/** The content type that S3 returns for an object that was stored without one. */
const s3DefaultContentType = "binary/octet-stream";

/**
 * Returns the content-type header with the type of the input's S3 object. Returns no header if the request has a
 * ContentType, or if the object was stored without a type.
 */
function contentTypeOf(
  headers: AsyncInvocation["headers"],
  { contentType }: OpenedInput,
): { readonly "content-type"?: string } {
  const named = headers["content-type"] ?? "";
  if (named !== "" || contentType === null || contentType === s3DefaultContentType) return {};
  return { "content-type": contentType };
}

/** Opens the input. Short inputs are buffered so that the request can be retried on another instance. */
async function openInput(
  invocation: AsyncInvocation,
  options: AsyncRunOptions,
  lease: ByteLease,
): Promise<OpenedInput> {
  const { input } = invocation;
  if (input.at === "record") {
    reserveCallMemory(lease, input.byteLength);
    const held = await options.inline();
    if (held === null)
      throw new PermanentFault("The input in the request's body is damaged or deleted. Send the request again.");
    return { body: held, byteLength: held.length, contentType: null };
  }
  const beganNs = options.clock.monotonicNs();
  try {
    const opened = await openObject(input.location, options, lease);
    options.record("RequestDownloadLatency", (options.clock.monotonicNs() - beganNs) / 1000);
    return opened;
  } catch (error) {
    if (error instanceof AwsError && error.code !== "ServiceUnavailable") {
      options.record("RequestDownloadFailures", 1);
      throw new PermanentFault(`Unable to download the input ${input.url}: ${error.code}: ${error.message}`, {
        cause: error,
      });
    }
    throw error;
  }
}

async function openObject(
  { bucket, key }: { readonly bucket: string; readonly key: string },
  { store, bodyBytesMax }: AsyncRunOptions,
  lease: ByteLease,
): Promise<OpenedInput> {
  const { head, body } = await store.get(bucket, key);
  try {
    if (head.byteLength > bodyBytesMax) throw payloadTooLarge(bodyBytesMax);
    const { byteLength, contentType } = head;
    if (byteLength > bufferedBytesMax) return { body, byteLength, contentType };
    reserveCallMemory(lease, byteLength);
    return {
      body: await readToBuffer(body, bufferedBytesMax, () => payloadTooLarge(bufferedBytesMax)),
      byteLength,
      contentType,
    };
  } catch (error) {
    body.destroy();
    throw error;
  }
}

async function store(
  { output, topics }: AsyncInvocation,
  reply: InvocationReply,
  { store: objects, record, clock, bodyBytesMax }: AsyncRunOptions,
  signal: AbortSignal,
): Promise<Extract<AsyncResult, { readonly is: "completed" }>> {
  const { contentType, variantName } = reply;
  const response = new ResponseBytes(bodyBytesMax, topics.includesIn.success ? messageResponseBytesMax : 0);
  const source = Buffer.isBuffer(reply.body) ? Readable.from(reply.body) : reply.body;
  source.once("error", (error) => response.destroy(error));
  source.pipe(response);
  const beganNs = clock.monotonicNs();
  try {
    if (output === null) await drained(response, signal);
    else {
      const options = { signal, ...(contentType === null ? {} : { contentType }) };
      await objects.put(output.bucket, output.key, response, options);
      record("ResponseUploadLatency", (clock.monotonicNs() - beganNs) / 1000);
    }
  } catch (error) {
    source.destroy();
    // A broken or oversized response is an error of the container, not of the upload.
    if (response.fault !== null) throw response.fault;
    if (output !== null && error instanceof AwsError && !isTemporaryStoreError(error)) {
      record("ResponseUploadFailures", 1);
      const text = `Unable to upload the output to ${s3Url(output)}: ${error.code}: ${error.message}`;
      throw new PermanentFault(text, { cause: error });
    }
    throw error;
  }
  return { is: "completed", variantName, contentType, body: response.kept };
}

/** Returns whether a later attempt may succeed: the disk is full, or the S3 service of the objects does not respond. */
export function isTemporaryStoreError(error: AwsError): boolean {
  return error.code === "ServiceUnavailable" || diskFaultOf(error) !== null;
}

async function drained(response: ResponseBytes, signal: AbortSignal): Promise<void> {
  for await (const chunk of response) {
    signal.throwIfAborted();
    void chunk;
  }
}

/** A stream of the response's bytes with a maximum size. Responses of at most `keptBytesMax` bytes are also kept in memory. */
class ResponseBytes extends Transform {
  readonly #bytesMax: number;
  readonly #keptBytesMax: number;
  readonly #chunks: Buffer[] = [];
  #byteLength = 0;
  /** The error that aborted the response. */
  fault: Error | null = null;

  constructor(bytesMax: number, keptBytesMax: number) {
    super();
    this.#bytesMax = bytesMax;
    this.#keptBytesMax = keptBytesMax;
    this.once("error", (error) => (this.fault ??= error));
  }

  get kept(): Buffer | null {
    return this.#byteLength <= this.#keptBytesMax ? Buffer.concat(this.#chunks) : null;
  }

  override _transform(
    chunk: Buffer,
    _encoding: BufferEncoding,
    done: (error: Error | null, chunk?: Buffer) => void,
  ): void {
    this.#byteLength += chunk.length;
    if (this.#byteLength > this.#bytesMax) return done(payloadTooLarge(this.#bytesMax));
    if (this.#byteLength <= this.#keptBytesMax) this.#chunks.push(chunk);
    else this.#chunks.length = 0;
    done(null, chunk);
  }
}

/** Returns the outcome of a run that failed with the error. */
function outcomeOfError(error: unknown, closing: AbortSignal): AsyncRunOutcome {
  if (closing.aborted) return { kind: "interrupted", why: closing.reason };
  const message = error instanceof Error ? error.message : String(error);
  const refused = (reason: string, text: string, logged = text): AsyncRunOutcome => ({
    kind: "refused",
    failure: { reason, text, logged },
  });
  if (error instanceof InvocationTimeout || error instanceof PermanentFault)
    return refused(`ClientError: ${message}`, message);
  if (diskFaultOf(error) !== null) return { kind: "interrupted", why: error };
  const isGone = !(error instanceof AwsError) || error.cause instanceof ContainerConnectionLost;
  if (isGone) return { kind: "lost", failure: { reason: `InternalServerError: ${message}`, text: message } };
  // ServiceUnavailable is temporary: the platform has too little memory now, or the instance has too many requests.
  if (error.code === "ServiceUnavailable") return { kind: "interrupted", why: error };
  const { OriginalStatusCode: status, OriginalMessage: said } = error.members;
  if (typeof status !== "number" || status === 0) return refused(`ClientError: ${message}`, message);
  const side = status >= 400 && status < 500 ? "client" : "server";
  const reason =
    `ClientError: Received ${side} error (${status}) from model. ` +
    "See the SageMaker Endpoint logs in your account for more information.";
  return refused(reason, typeof said === "string" && said !== "" ? said : message, message);
}
