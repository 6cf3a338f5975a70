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
  timeoutText,
  tooLong,
  type InvocationReply,
  type InvocationRequest,
} from "../invocations/index.ts";
import type { AsyncFailure, AsyncInvocation } from "./async-invocation.ts";
import type { RequestMetric } from "./async-metrics.ts";
import { instanceOfLog, type RunTrace } from "./data-log.ts";
import { urlOf } from "./output-locations.ts";
import { includedBytesMax, type AsyncResult } from "./result-message.ts";

export interface AsyncRunOptions {
  readonly store: Pick<ObjectStore, "get" | "put">;
  /** Reads an input that came with the request; null if its record is gone. */
  readonly inline: () => Promise<Buffer | null>;
  readonly invoke: (request: InvocationRequest) => Promise<InvocationReply>;
  readonly record: (metric: RequestMetric, value: number) => void;
  /** Data of the run for its line in the log; filled while it runs. */
  readonly trace: RunTrace;
  readonly memory: ByteBudget;
  readonly bodyBytesMax: number;
  readonly clock: Clock;
}

/** The outcome of one run of a request. */
export type RunEnd =
  | { readonly kind: "answered"; readonly result: Extract<AsyncResult, { readonly is: "completed" }> }
  | { readonly kind: "refused" | "lost"; readonly failure: AsyncFailure }
  /** The run is to be repeated later. */
  | { readonly kind: "interrupted"; readonly why: unknown };

class TimeOver extends Error {}
/** An error of an input or an output location, which a further run would meet again. */
class Unusable extends Error {}

/**
 * Reads the input, invokes an instance and stores the response. Throws only on bugs; closes everything that it opens.
 */
export async function runInvocation(
  invocation: AsyncInvocation,
  options: AsyncRunOptions,
  closing: AbortSignal,
): Promise<RunEnd> {
  const { clock, memory } = options;
  const late = () => new TimeOver(timeoutText("primary"));
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
    } finally {
      reply.done();
    }
  } catch (error) {
    const isLate = limit.hasExpired;
    return endOf(isLate ? (limit.signal.reason as Error) : error, closing);
  } finally {
    if (input?.body instanceof Readable) input.body.destroy();
  }
}

/** The bytes of a request's input. */
interface OpenedInput {
  readonly body: Buffer | Readable;
  readonly byteLength: number;
  /** The type that the input's object was stored with. Null for an input that came with its request. */
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
    // The limit of the run itself ends it first, with its own error.
    bounds: {
      answerMsMax: timeLimitMs + 1000,
      answerBytesMax: parts.bodyBytesMax,
      onContainer: (logStreamArn) => (parts.trace.instance = instanceOfLog(logStreamArn)),
    },
    receivedNs: clock.monotonicNs(),
    signal,
  };
}

/** The type that S3 gives to an object that was stored without one. */
const unnamedType = "binary/octet-stream";

/** Returns the content type for the container: the call's, else the object's, else none. */
function contentTypeOf(
  headers: AsyncInvocation["headers"],
  { contentType }: OpenedInput,
): { readonly "content-type"?: string } {
  const named = headers["content-type"] ?? "";
  if (named !== "" || contentType === null || contentType === unnamedType) return {};
  return { "content-type": contentType };
}

/** Opens the input. Short inputs are buffered, so that the request can be sent to another instance. */
async function openInput(invocation: AsyncInvocation, parts: AsyncRunOptions, lease: ByteLease): Promise<OpenedInput> {
  const { input } = invocation;
  if (input.at === "record") {
    reserveCallMemory(lease, input.byteLength);
    const held = await parts.inline();
    if (held === null) throw new Unusable("The request's input cannot be read any more.");
    return { body: held, byteLength: held.length, contentType: null };
  }
  const beganNs = parts.clock.monotonicNs();
  try {
    const opened = await openObject(input.location, parts, lease);
    parts.record("RequestDownloadLatency", (parts.clock.monotonicNs() - beganNs) / 1000);
    return opened;
  } catch (error) {
    if (error instanceof AwsError && error.code !== "ServiceUnavailable") {
      parts.record("RequestDownloadFailures", 1);
      throw new Unusable(`Unable to download the input ${input.url}: ${error.code}: ${error.message}`, {
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
    if (head.byteLength > bodyBytesMax) throw tooLong(bodyBytesMax);
    const { byteLength, contentType } = head;
    if (byteLength > bufferedBytesMax) return { body, byteLength, contentType };
    reserveCallMemory(lease, byteLength);
    return {
      body: await readToBuffer(body, bufferedBytesMax, () => tooLong(bufferedBytesMax)),
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
  const answer = new AnswerBytes(bodyBytesMax, topics.includesIn.success ? includedBytesMax : 0);
  const source = Buffer.isBuffer(reply.body) ? Readable.from(reply.body) : reply.body;
  source.once("error", (error) => answer.destroy(error));
  source.pipe(answer);
  const beganNs = clock.monotonicNs();
  try {
    if (output === null) await drained(answer, signal);
    else {
      const options = { signal, ...(contentType === null ? {} : { contentType }) };
      await objects.put(output.bucket, output.key, answer, options);
      record("ResponseUploadLatency", (clock.monotonicNs() - beganNs) / 1000);
    }
  } catch (error) {
    source.destroy();
    // An error of the response itself is no error of the store.
    if (answer.fault !== null) throw answer.fault;
    // A full disk is not reported: the run is repeated later.
    if (output !== null && error instanceof AwsError && diskFaultOf(error) === null) {
      record("ResponseUploadFailures", 1);
      const text = `Unable to upload the output to ${urlOf(output)}: ${error.code}: ${error.message}`;
      throw new Unusable(text, { cause: error });
    }
    throw error;
  }
  return { is: "completed", variantName, contentType, answer: answer.kept };
}

async function drained(answer: AnswerBytes, signal: AbortSignal): Promise<void> {
  for await (const piece of answer) {
    signal.throwIfAborted();
    void piece;
  }
}

/** A response in transit, up to a maximum size; a short one is also buffered. */
class AnswerBytes extends Transform {
  readonly #bytesMax: number;
  readonly #keptBytesMax: number;
  readonly #pieces: Buffer[] = [];
  #byteLength = 0;
  /** The error that ended the response early. */
  fault: Error | null = null;

  constructor(bytesMax: number, keptBytesMax: number) {
    super();
    this.#bytesMax = bytesMax;
    this.#keptBytesMax = keptBytesMax;
    this.once("error", (error) => (this.fault ??= error));
  }

  get kept(): Buffer | null {
    return this.#byteLength <= this.#keptBytesMax ? Buffer.concat(this.#pieces) : null;
  }

  override _transform(
    piece: Buffer,
    _encoding: BufferEncoding,
    done: (error: Error | null, piece?: Buffer) => void,
  ): void {
    this.#byteLength += piece.length;
    if (this.#byteLength > this.#bytesMax) return done(tooLong(this.#bytesMax));
    if (this.#byteLength <= this.#keptBytesMax) this.#pieces.push(piece);
    else this.#pieces.length = 0;
    done(null, piece);
  }
}

/** Returns the outcome of a run that threw. */
function endOf(error: unknown, closing: AbortSignal): RunEnd {
  if (closing.aborted) return { kind: "interrupted", why: closing.reason };
  const message = error instanceof Error ? error.message : String(error);
  const refused = (reason: string, text: string, logged = text): RunEnd => ({
    kind: "refused",
    failure: { reason, text, logged },
  });
  if (error instanceof TimeOver || error instanceof Unusable) return refused(`ClientError: ${message}`, message);
  if (diskFaultOf(error) !== null) return { kind: "interrupted", why: error };
  const isGone = !(error instanceof AwsError) || error.cause instanceof ContainerConnectionLost;
  if (isGone) return { kind: "lost", failure: { reason: `InternalServerError: ${message}`, text: message } };
  // Memory is short for the moment, or the instance has too many requests.
  if (error.code === "ServiceUnavailable") return { kind: "interrupted", why: error };
  const { OriginalStatusCode: status, OriginalMessage: said } = error.members;
  if (typeof status !== "number" || status === 0) return refused(`ClientError: ${message}`, message);
  const side = status >= 400 && status < 500 ? "client" : "server";
  const reason =
    `ClientError: Received ${side} error (${status}) from model. ` +
    "See the SageMaker Endpoint logs in your account for more information.";
  return refused(reason, typeof said === "string" && said !== "" ? said : message, message);
}
