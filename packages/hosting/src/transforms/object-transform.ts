import { Readable } from "node:stream";
import type { EventLoopQueue } from "@galatea/base";
import type { ObjectStore } from "../objects/index.ts";
import { processedAnswer } from "./data-processing.ts";
import type { InputObject } from "./input-objects.ts";
import type { HeldBytes, JobMemory, ObjectMemory } from "./job-memory.ts";
import { objectPayloads, recordBytesMaxDefault, withLineEnd } from "./object-payloads.ts";
import { openSource, sourceError, type ObjectSource } from "./object-source.ts";
import type { Payload } from "./payload-packer.ts";
import { AnswerOutgrown, type TransformInstance } from "./transform-instance.ts";
import type { RequestShape, TransformPlan } from "./transform-request.ts";

export interface ObjectTransformOptions {
  readonly store: Pick<ObjectStore, "get" | "put">;
  readonly plan: TransformPlan;
  readonly shape: RequestShape;
  readonly instance: Pick<TransformInstance, "ask" | "askStreaming" | "hopBytes">;
  readonly memory: JobMemory;
  /** Of all jobs. */
  readonly loopQueue: EventLoopQueue;
  /** What answers of the job have been like so far. */
  readonly answers: AnswerSizes;
  /** Called when the container has no more to do with the object, whose output may still be written. */
  readonly answered: () => void;
}

/** What the longest answer of a job took so far: so much is held for the next one before it is asked for. */
export interface AnswerSizes {
  bytesMax: number;
}

/** Answers that wait for their turn may take together what payloads may. */
const answersBytesMax = 100 * 2 ** 20;
/** Held for the first answers of a job. */
const answerBytesFirst = 64 * 1024;
/** What a stream through the container has in its buffers on both sides. */
const streamBytes = 2 ** 20;
/** Answers go to the store in pieces of this length: a write of each short answer would cost more than the answer. */
const pieceBytes = 64 * 1024;

interface ObjectPart extends Omit<ObjectTransformOptions, "memory"> {
  readonly memory: ObjectMemory;
}

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
  using memory = options.memory.open();
  const part = { ...options, memory };
  const pieces = isOneRequest(plan, shape)
    ? streamedAnswer(place, part, either)
    : inPieces(orderedAnswers(place, part, either));
  let failure: { readonly error: unknown } | null = null;
  // The store tells of a body that broke off in its own words.
  const told = async function* () {
    try {
      yield* pieces;
      options.answered();
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
  { store, plan, shape, instance, memory }: ObjectPart,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  await memory.hold(streamBytes + instance.hopBytes, signal);
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
  options: ObjectPart,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const { store, plan, shape, memory, loopQueue } = options;
  const source = await openSource(store, place, { isGzip: plan.isGzip, bytesMax: null });
  const bytes = payloadBytes(source, options);
  const payloads = objectPayloads(source, plan, shape, { loopQueue, signal });
  const asked: Promise<HeldAnswer>[] = [];
  const next = async function* () {
    const first = await asked.shift();
    if (first === undefined) return;
    yield first.answer;
    first.held[Symbol.dispose]();
  };
  try {
    // The record that has begun, which belongs to no payload yet.
    await memory.hold(bytes, signal);
    for (;;) {
      while (asked.length > shape.concurrency) yield* next();
      let held = memory.tryHold(bytes);
      while (held === null && asked.length > 0) {
        yield* next();
        held = memory.tryHold(bytes);
      }
      held ??= await memory.hold(bytes, signal);
      const payload = await payloads.next();
      if (payload.done === true) {
        held[Symbol.dispose]();
        break;
      }
      const { body, originals } = payload.value;
      held.shrinkTo(body.length + (originals?.length ?? 0));
      const answer = askFor(payload.value, held, options, signal);
      // Nobody may be waiting for it yet when it fails.
      answer.catch(() => {});
      asked.push(answer);
    }
    while (asked.length > 0) yield* next();
  } finally {
    source.body.destroy();
    await Promise.allSettled(asked);
  }
}

/** What a payload of an object takes at most: of a short object not what others might. */
function payloadBytes({ byteLength }: ObjectSource, { plan, shape }: ObjectPart): number {
  const bytesMax = shape.payloadBytesMax ?? recordBytesMaxDefault;
  const bytes = byteLength === null ? bytesMax : Math.min(bytesMax, byteLength);
  return plan.processing === null ? bytes : 2 * bytes;
}

interface HeldAnswer {
  readonly answer: Buffer;
  /** To be given back when the answer has been taken. */
  readonly held: HeldBytes;
}

/** More is held for an answer that is longer than was thought, and it is asked for again. */
async function askFor(
  { body, originals }: Payload,
  payload: HeldBytes,
  { instance, plan, shape, memory, answers, loopQueue }: ObjectPart,
  signal: AbortSignal,
): Promise<HeldAnswer> {
  const answerBytesMax = Math.floor(answersBytesMax / shape.concurrency);
  using _payload = payload;
  for (;;) {
    const answerHeldBytes = Math.min(answerBytesMax, Math.max(answerBytesFirst, answers.bytesMax));
    const held = await memory.hold(answerHeldBytes + instance.hopBytes, signal);
    try {
      const answer = await instance.ask({ body, answerBytesMax, answerHeldBytes }, signal);
      const { processing, assemblesLines } = plan;
      const result =
        processing === null ? answer : await processedAnswer(answer, originals, processing, { loopQueue, signal });
      const ended = assemblesLines && result.length > 0 ? withLineEnd(result) : result;
      held.shrinkTo(ended.length);
      return { answer: ended, held };
    } catch (error) {
      held[Symbol.dispose]();
      if (!(error instanceof AnswerOutgrown)) throw error;
      answers.bytesMax = Math.max(answers.bytesMax, 2 * answerHeldBytes);
    }
  }
}

/** Short ones joined. */
async function* inPieces(answers: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  let short: Buffer[] = [];
  let byteLength = 0;
  for await (const answer of answers) {
    short.push(answer);
    byteLength += answer.length;
    if (byteLength < pieceBytes) continue;
    yield* short.length === 1 ? [answer] : [Buffer.concat(short, byteLength)];
    short = [];
    byteLength = 0;
  }
  if (byteLength > 0) yield Buffer.concat(short, byteLength);
}
