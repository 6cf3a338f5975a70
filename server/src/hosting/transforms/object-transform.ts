import { Readable } from "node:stream";
import type { Semaphore } from "../../base/index.ts";
import type { ObjectStore } from "../../blobs/index.ts";
import { processedAnswer } from "./data-processing.ts";
import type { InputObject } from "./input-objects.ts";
import { objectPayloads, withLineEnd } from "./object-payloads.ts";
import { openSource, sourceError } from "./object-source.ts";
import type { Payload } from "./payload-packer.ts";
import type { TransformInstance } from "./transform-instance.ts";
import type { RequestShape, TransformPlan } from "./transform-request.ts";

export interface ObjectTransformOptions {
  readonly store: Pick<ObjectStore, "get" | "put">;
  readonly plan: TransformPlan;
  readonly shape: RequestShape;
  readonly instance: Pick<TransformInstance, "ask" | "askStreaming">;
  /** One for each payload in memory, shared by the objects of an instance. */
  readonly held: Semaphore;
}

/** Answers that wait for their turn may take together what payloads may. */
const answersBytesMax = 100 * 2 ** 20;

/**
 * Reads an object, asks an instance for its records, and writes the answers in the order of the records. Neither is ever whole in
 * memory. The output is there whole or not at all. Gives the output's length.
 */
export async function transformObject(
  { place, output }: InputObject,
  options: ObjectTransformOptions,
  signal: AbortSignal,
): Promise<number> {
  const { store, plan, shape } = options;
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const pieces = isOneRequest(plan, shape)
    ? streamedAnswer(place, options, either)
    : orderedAnswers(place, options, either);
  let failure: { readonly error: unknown } | null = null;
  // The store tells of a body that broke off in its own words.
  const told = async function* () {
    try {
      yield* pieces;
    } catch (error) {
      failure = { error: sourceError(error) };
      throw error;
    }
  };
  const body = Readable.from(told(), { objectMode: false });
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

/** Nothing in it has to be known or bounded: it passes through. */
function isOneRequest({ splitType, processing }: TransformPlan, { strategy, payloadBytesMax }: RequestShape): boolean {
  if (processing !== null) return false;
  return splitType === "None" || (payloadBytesMax === null && strategy === "MultiRecord");
}

async function* streamedAnswer(
  place: InputObject["place"],
  { store, plan, shape, instance }: ObjectTransformOptions,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const bounds = { isGzip: plan.isGzip, bytesMax: shape.payloadBytesMax };
  const first = await openSource(store, place, bounds);
  // Without a bound it is sent in chunks, as SageMaker does.
  const byteLength = shape.payloadBytesMax === null ? null : first.byteLength;
  let unused: Readable | null = first.body;
  const body = async () => {
    const opened = unused ?? (await openSource(store, place, bounds)).body;
    unused = null;
    return opened;
  };
  let lastByte: number | undefined;
  try {
    for await (const piece of instance.askStreaming({ body, byteLength }, signal)) {
      lastByte = piece.at(-1) ?? lastByte;
      yield piece;
    }
    if (plan.assemblesLines && lastByte !== undefined && lastByte !== 0x0a) yield Buffer.from("\n");
  } finally {
    unused?.destroy();
    first.body.destroy();
  }
}

/** Requests go out as there are places; their answers come out in the order of the object. */
async function* orderedAnswers(
  place: InputObject["place"],
  options: ObjectTransformOptions,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const { store, plan, shape, held } = options;
  const source = await openSource(store, place, { isGzip: plan.isGzip, bytesMax: null });
  const payloads = objectPayloads(source, plan, shape);
  const asked: { readonly answer: Promise<Buffer>; readonly room: Disposable }[] = [];
  const next = async () => {
    const first = asked.shift();
    if (first === undefined) return Buffer.alloc(0);
    using _room = first.room;
    return await first.answer;
  };
  try {
    for (;;) {
      // What is held for this object is given back before more is waited for: objects beside it may wait for that.
      while (asked.length > shape.concurrency) yield await next();
      let room = held.tryAcquire();
      while (room === null && asked.length > 0) {
        yield await next();
        room = held.tryAcquire();
      }
      room ??= await held.acquire(signal);
      const payload = await payloads.next().catch((error: unknown) => {
        room[Symbol.dispose]();
        throw error;
      });
      if (payload.done === true) {
        room[Symbol.dispose]();
        break;
      }
      const answer = askFor(payload.value, options, signal);
      // Nobody may be waiting for it yet when it fails.
      answer.catch(() => {});
      asked.push({ answer, room });
    }
    while (asked.length > 0) yield await next();
  } finally {
    source.body.destroy();
    for (const { answer, room } of asked) {
      await answer.catch(() => {});
      room[Symbol.dispose]();
    }
  }
}

async function askFor(
  { body, originals }: Payload,
  { instance, plan, shape }: ObjectTransformOptions,
  signal: AbortSignal,
): Promise<Buffer> {
  const sent = { body: () => Promise.resolve(body), byteLength: null };
  const answer = await instance.ask(sent, Math.floor(answersBytesMax / shape.concurrency), signal);
  const { processing, assemblesLines } = plan;
  const result = processing === null ? answer : processedAnswer(answer, originals, processing);
  return assemblesLines && result.length > 0 ? withLineEnd(result) : result;
}
