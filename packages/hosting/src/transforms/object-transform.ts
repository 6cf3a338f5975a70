import { Readable } from "node:stream";
import type { EventLoopQueue } from "@galatea/base";
import type { ObjectStore } from "../objects/index.ts";
import { processResponse } from "./data-processing.ts";
import type { InputObject } from "./input-objects.ts";
import type { BytesLease, JobMemory, ObjectMemory } from "./job-memory.ts";
import { objectPayloads, recordBytesMaxDefault, appendLineEnd } from "./object-payloads.ts";
import { openObjectSource, toSourceError, type ObjectSource } from "./object-source.ts";
import type { Payload } from "./payload-packer.ts";
import { ResponseExceedsReservation, type TransformInstance } from "./transform-instance.ts";
import type { RequestShape, TransformPlan } from "./transform-request.ts";

export interface ObjectTransformOptions {
  readonly store: Pick<ObjectStore, "get" | "put">;
  readonly plan: TransformPlan;
  readonly shape: RequestShape;
  readonly instance: Pick<TransformInstance, "invoke" | "invokeStreaming" | "hopBytes">;
  readonly memory: JobMemory;
  /** Shared by all jobs. */
  readonly loopQueue: EventLoopQueue;
  /** The size of the largest response of the job so far. */
  readonly responseSizes: ResponseSizes;
  /** Called when the container has sent all responses. The output may still be being written. */
  readonly onResponse: () => void;
}

/** The size of the largest response of a job so far. This much memory is reserved for the next response. */
export interface ResponseSizes {
  bytesMax: number;
}

/** Maximum total bytes of responses that wait for earlier responses; equal to the maximum for payloads. */
const responsesBytesMax = 100 * 2 ** 20;
/** Bytes that are reserved for each of the first responses of a job. */
const firstResponseBytes = 64 * 1024;
/** Bytes of a streamed request: the buffers before and after the container. */
const streamBytes = 2 ** 20;
/** Minimum bytes of a write to the store, because a write for each short response would cost more than the response. */
const chunkBytes = 64 * 1024;

interface ObjectChunk extends Omit<ObjectTransformOptions, "memory"> {
  readonly memory: ObjectMemory;
}

/**
 * Reads an object, sends its records to an instance, and writes the responses in the order of the records, without
 * buffering the whole input or output. If the transform fails, no output is written. Returns the output's length.
 */
export async function transformObject(
  { place, output }: InputObject,
  options: ObjectTransformOptions,
  signal: AbortSignal,
): Promise<number> {
  const { store, plan, shape } = options;
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  using memory = options.memory.open();
  const part = { ...options, memory };
  const chunks = isOneRequest(plan, shape)
    ? streamedResponse(place, part, either)
    : inChunks(orderedResponses(place, part, either));
  let failure: { readonly error: unknown } | null = null;
  // Keeps the original error, because the store replaces errors of the body by its own.
  const reportingChunks = async function* () {
    try {
      yield* chunks;
      options.onResponse();
    } catch (error) {
      failure = { error: toSourceError(error) };
      throw error;
    }
  };
  const body = Readable.from(reportingChunks(), { objectMode: false });
  try {
    const contentType = plan.accept === null ? {} : { contentType: plan.accept };
    const head = await store.put(output.bucket, output.key, body, { ...contentType, signal: either });
    return head.byteLength;
  } catch (error) {
    signal.throwIfAborted();
    throw (failure as { readonly error: unknown } | null)?.error ?? error;
  } finally {
    over.abort(new Error("the object is over"));
    body.destroy();
  }
}

/** Returns true if the object can be streamed as one request, because no filter, split or size limit applies to it. */
function isOneRequest({ splitType, processing }: TransformPlan, { strategy, payloadBytesMax }: RequestShape): boolean {
  if (processing !== null) return false;
  return splitType === "None" || (payloadBytesMax === null && strategy === "MultiRecord");
}

async function* streamedResponse(
  location: InputObject["place"],
  { store, plan, shape, instance, memory }: ObjectChunk,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  await memory.hold(streamBytes + instance.hopBytes, signal);
  const bounds = { isGzip: plan.isGzip, bytesMax: shape.payloadBytesMax };
  const first = await openObjectSource(store, location, bounds);
  // Without a payload limit, the request uses chunked encoding, as SageMaker's does.
  const byteLength = shape.payloadBytesMax === null ? null : first.byteLength;
  let unused: Readable | null = first.body;
  const body = async () => {
    const opened = unused ?? (await openObjectSource(store, location, bounds)).body;
    unused = null;
    return opened;
  };
  let lastByte: number | undefined;
  try {
    for await (const chunk of instance.invokeStreaming({ body, byteLength }, signal)) {
      lastByte = chunk.at(-1) ?? lastByte;
      yield chunk;
    }
    if (plan.assemblesLines && lastByte !== undefined && lastByte !== 0x0a) yield Buffer.from("\n");
  } finally {
    unused?.destroy();
    first.body.destroy();
  }
}

/** Sends requests while slots are free. Yields the responses in the order of the requests. */
async function* orderedResponses(
  location: InputObject["place"],
  options: ObjectChunk,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const { store, plan, shape, memory, loopQueue } = options;
  const source = await openObjectSource(store, location, { isGzip: plan.isGzip, bytesMax: null });
  const bytes = payloadBytes(source, options);
  const payloads = objectPayloads(source, plan, shape, { loopQueue, signal });
  const call: Promise<BufferedResponse>[] = [];
  const next = async function* () {
    const first = await call.shift();
    if (first === undefined) return;
    yield first.bytes;
    first.held[Symbol.dispose]();
  };
  try {
    // Reserves memory for the incomplete record, which is not in a payload yet.
    await memory.hold(bytes, signal);
    for (;;) {
      while (call.length > shape.concurrency) yield* next();
      let lease = memory.tryHold(bytes);
      while (lease === null && call.length > 0) {
        yield* next();
        lease = memory.tryHold(bytes);
      }
      lease ??= await memory.hold(bytes, signal);
      const payload = await payloads.next();
      if (payload.done === true) {
        lease[Symbol.dispose]();
        break;
      }
      const { body, originals } = payload.value;
      lease.shrinkTo(body.length + (originals?.length ?? 0));
      const response = requestPayload(payload.value, lease, options, signal);
      // Without this line, a request that fails before it is awaited would be an unhandled rejection.
      response.catch(() => {});
      call.push(response);
    }
    while (call.length > 0) yield* next();
  } finally {
    source.body.destroy();
    await Promise.allSettled(call);
  }
}

/** Returns the bytes to reserve for a payload of an object; less for a short object. */
function payloadBytes({ byteLength }: ObjectSource, { plan, shape }: ObjectChunk): number {
  const bytesMax = shape.payloadBytesMax ?? recordBytesMaxDefault;
  const bytes = byteLength === null ? bytesMax : Math.min(bytesMax, byteLength);
  return plan.processing === null ? bytes : 2 * bytes;
}

interface BufferedResponse {
  readonly bytes: Buffer;
  /** The reserved memory. Dispose it when the response has been consumed. */
  readonly held: BytesLease;
}

/** Sends a payload. If the response exceeds the reserved memory, reserves more and sends the payload again. */
async function requestPayload(
  { body, originals }: Payload,
  payload: BytesLease,
  { instance, plan, shape, memory, responseSizes: responses, loopQueue }: ObjectChunk,
  signal: AbortSignal,
): Promise<BufferedResponse> {
  const answerBytesMax = Math.floor(responsesBytesMax / shape.concurrency);
  using _payload = payload;
  for (;;) {
    const answerHeldBytes = Math.min(answerBytesMax, Math.max(firstResponseBytes, responses.bytesMax));
    const lease = await memory.hold(answerHeldBytes + instance.hopBytes, signal);
    try {
      const response = await instance.invoke(
        { body, responseBytesMax: answerBytesMax, responseBufferedBytes: answerHeldBytes },
        signal,
      );
      const { processing, assemblesLines } = plan;
      const result =
        processing === null ? response : await processResponse(response, originals, processing, { loopQueue, signal });
      const ended = assemblesLines && result.length > 0 ? appendLineEnd(result) : result;
      lease.shrinkTo(ended.length);
      return { bytes: ended, held: lease };
    } catch (error) {
      lease[Symbol.dispose]();
      if (!(error instanceof ResponseExceedsReservation)) throw error;
      responses.bytesMax = Math.max(responses.bytesMax, 2 * answerHeldBytes);
    }
  }
}

/** Joins short responses to chunks of at least `chunkBytes`. */
async function* inChunks(responses: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  let short: Buffer[] = [];
  let byteLength = 0;
  for await (const response of responses) {
    short.push(response);
    byteLength += response.length;
    if (byteLength < chunkBytes) continue;
    yield* short.length === 1 ? [response] : [Buffer.concat(short, byteLength)];
    short = [];
    byteLength = 0;
  }
  if (byteLength > 0) yield Buffer.concat(short, byteLength);
}
